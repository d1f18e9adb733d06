export { linesWithCodes, productOf, Voucherd, type LineWithCode, type WaitOptions } from "./client.js";
export { Decimal, type DecimalSource } from "./decimal.js";
export { NoAnswerError, VoucherdError, WaitTimeoutError, WebhookVerificationError } from "./errors.js";
export type * from "./generated/api.js";
export * from "./generated/problems.js";
export type * from "./generated/types.js";
export type { StreamOptions } from "./stream.js";
export type { CallOptions, TransportOptions } from "./transport.js";
export { verifyWebhook, type VerifyOptions, type WebhookHeaders } from "./webhooks.js";
