/** What is known of a failed call. */
export interface Failure {
  status: number;
  code: string;
  retryable: boolean;
  requestId?: string | undefined;
  field?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** A call that failed. Decide by its class or by its `code`, which never changes; the message is for people. */
export class VoucherdError extends Error {
  override readonly name: string = "VoucherdError";
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** The stable name of the kind of error. */
  readonly code: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Names the call in our logs: quote it when you ask about one. */
  readonly requestId: string | undefined;
  /** The field that breaks a rule. */
  readonly field: string | undefined;
  /** How long to wait before the next attempt, if the service said so. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, failure: Failure) {
    super(message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.status = failure.status;
    this.code = failure.code;
    this.retryable = failure.retryable;
    this.requestId = failure.requestId;
    this.field = failure.field;
    this.retryAfterMs = failure.retryAfterMs;
  }
}

/** No answer came: no connection, a connection that broke, or nothing within the time that a call has. */
export class NoAnswerError extends VoucherdError {
  override readonly name = "NoAnswerError";

  constructor(message: string, cause?: unknown) {
    super(message, { status: 0, code: "no_answer", retryable: true, cause });
  }
}

/** The order was not over when the time to wait was. It goes on: wait again, or find it later. */
export class WaitTimeoutError extends Error {
  override readonly name = "WaitTimeoutError";

  constructor(readonly trx: string) {
    super(`order ${trx} is not over yet`);
  }
}

/** A message that is not from the service, was changed, or is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}
