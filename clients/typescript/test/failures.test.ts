import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import {
  BadInputError,
  InsufficientBalanceError,
  NoAnswerError,
  OrderNotFoundError,
  RateLimitExceededError,
  UnauthorizedError,
  VoucherdError,
} from "voucherd-client";

import { answering, cart, live, losing, sandbox, url } from "./shop.js";

test("an error is a class by its code, and says all that the service said", async () => {
  const shop = sandbox();
  await assert.rejects(shop.findOrder("TRX0"), OrderNotFoundError);
  await assert.rejects(shop.createOrder({ items: [], paymentCurrency: "EUR" }), (error) => {
    assert.ok(error instanceof BadInputError && error instanceof VoucherdError);
    assert.deepEqual([error.status, error.code, error.field, error.retryable], [400, "bad_input", "items", false]);
    assert.match(error.requestId ?? "", /^req_/);
    assert.equal(error.name, "BadInputError");
    return true;
  });
  const { trx } = await shop.createOrder(cart());
  await assert.rejects(shop.confirmOrder(trx, { sandboxOutcome: "insufficient-balance" }), InsufficientBalanceError);
  await assert.rejects(sandbox({ key: "vk_test_nobody" }).findAccounts(), UnauthorizedError);
});

test("an answer that is lost is asked for again, and nothing is done twice", async () => {
  const seen: string[] = [];
  const shop = live({ fetch: losing(2, seen) });
  const body = cart();
  const order = await shop.createOrder(body);
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen).size, 1);
  assert.match(seen[0] ?? "", /^[0-9a-f-]{36}$/);
  const { metadata } = await live().findOrders({ reference: body.reference });
  assert.equal(metadata.totalItems, 1);

  const [before] = await live().findAccounts({ currency: "EUR" });
  const paid = await live({ fetch: losing(1) }).confirmOrder(order.trx);
  const [after] = await live().findAccounts({ currency: "EUR" });
  assert.equal(paid.orderStatus, "finished");
  assert.equal(before?.totalAmount.minus(paid.priceInclVat).text, after?.totalAmount.text);
});

test("an idempotency key of one's own is sent as it is", async () => {
  const shop = live();
  const body = cart();
  const idempotencyKey = randomUUID();
  const first = await shop.createOrder(body, { idempotencyKey });
  assert.equal((await shop.createOrder(body, { idempotencyKey })).trx, first.trx);
});

test("a call that may succeed later is sent again, and only so often", async () => {
  const busy = (): Response => new Response("full", { status: 503, headers: { "retry-after": "0" } });
  assert.equal((await live({ fetch: answering(4, busy) }).findAccounts()).length > 0, true);
  await assert.rejects(live({ fetch: answering(5, busy) }).findAccounts(), (error) => {
    assert.ok(error instanceof VoucherdError);
    assert.deepEqual([error.status, error.code], [503, "http_503"]);
    return true;
  });
  await assert.rejects(live({ fetch: answering(1, busy), retries: 0 }).findAccounts(), VoucherdError);
});

test("a call that has to wait for too long is not sent again", async () => {
  const problem = JSON.stringify({ code: "rate_limit_exceeded", title: "rate limit exceeded", retryable: true });
  const headers = { "content-type": "application/problem+json", "retry-after": "3600" };
  const later = (): Response => new Response(problem, { status: 429, headers });
  await assert.rejects(live({ fetch: answering(1, later) }).findAccounts(), (error) => {
    assert.ok(error instanceof RateLimitExceededError);
    assert.equal(error.retryAfterMs, 3_600_000);
    return true;
  });
});

test("a service that does not answer is an error, and a call can be given up", async () => {
  await assert.rejects(live({ url: "http://127.0.0.1:1", retries: 0 }).findAccounts(), NoAnswerError);
  const silent: typeof fetch = (_, init) =>
    new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
  await assert.rejects(live({ fetch: silent, retries: 0, timeoutMs: 5 }).findAccounts(), NoAnswerError);
  const giving = new AbortController();
  const call = live({ fetch: silent }).findAccounts({}, { signal: giving.signal });
  giving.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  await assert.rejects(live().findAccounts({}, { signal: giving.signal }), /enough/);
});

test("the key is in no error and in no text of the client", async () => {
  const { inspect } = await import("node:util");
  const shop = live({ url, key: "vk_live_secret" });
  const error: unknown = await shop.findAccounts().catch((one: unknown) => one);
  assert.ok(!inspect([shop, error], { depth: 9, showHidden: true }).includes("vk_live_secret"));
});
