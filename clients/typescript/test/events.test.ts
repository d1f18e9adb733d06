import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { Decimal, verifyWebhook, WebhookVerificationError, type Event } from "voucherd-client";

import { cart, live, told } from "./shop.js";

/** A secret or two, headers, a body, and whether the message is genuine. */
type Case = [string | string[], Record<string, string>, string, boolean];

test("a message is believed if its signature fits, and refused otherwise", async () => {
  const cases = JSON.parse(told("VOUCHERD_WEBHOOK_CASES")) as Case[];
  assert.ok(cases.length > 5);
  for (const [secret, headers, body, genuine] of cases) {
    for (const form of [headers, new Headers(headers), upper(headers)]) {
      for (const sent of [body, new TextEncoder().encode(body)]) {
        if (genuine) {
          const event = await verifyWebhook(secret, form, sent);
          assert.equal(event.id, headers["webhook-id"]);
        } else {
          await assert.rejects(verifyWebhook(secret, form, sent), WebhookVerificationError);
        }
      }
    }
  }
  await assert.rejects(verifyWebhook("whsec_AAAA", {}, "{}"), /webhook-id is missing/);
});

function upper(headers: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]));
}

test("a later time than the message's is refused, unless it is tolerated", async () => {
  const [secret, headers, body] = (JSON.parse(told("VOUCHERD_WEBHOOK_CASES")) as Case[])[0] as Case;
  const now = new Date(Date.now() + 3_600_000);
  await assert.rejects(verifyWebhook(secret, headers, body, { now }), WebhookVerificationError);
  assert.equal((await verifyWebhook(secret, headers, body, { now, toleranceS: 7_200 })).type, "wallet.topped_up");
});

test("amounts of events are exact, and their data is typed by their type", async () => {
  const [secret, headers, body] = (JSON.parse(told("VOUCHERD_WEBHOOK_CASES")) as Case[])[0] as Case;
  const event = await verifyWebhook(secret, headers, body);
  assert.ok(event.type === "wallet.topped_up");
  assert.ok(event.data.amount instanceof Decimal);
  assert.equal(event.data.amount.text, "12345678901234567.10");
});

test("decimals are read in lists and with any spaces, and texts that look like them stay as they are", async () => {
  const reference = String.raw`\" "amount": 1.5, "amount":[2] \u0041\\`;
  const body = `{"data" : {"amount" : [ 0.10 , -7 ], "balance":\n1e2, "seq": 3, "reference": ${JSON.stringify(reference)}}}`;
  const key = Buffer.alloc(24, 7);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac("sha256", key).update(`evt_1.${timestamp}.${body}`).digest("base64");
  const headers = {
    "webhook-id": "evt_1",
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
  const event = await verifyWebhook(`whsec_${key.toString("base64")}`, headers, body);
  assert.deepEqual(event.data, {
    amount: [new Decimal("0.10"), new Decimal("-7")],
    balance: new Decimal("100"),
    seq: 3,
    reference,
  });
});

test("events are listed from the oldest on", async () => {
  const shop = live();
  const { trx } = await shop.createOrder(cart());
  await shop.confirmOrder(trx);
  const types: Event["type"][] = [];
  for await (const event of shop.allEvents({ trx, limit: 1 })) {
    assert.ok(event.type.startsWith("order."));
    types.push(event.type);
  }
  assert.deepEqual(types, ["order.created", "order.finished"]);
});

test("events come as they happen, and a stream that broke goes on where it was", async () => {
  let opened = 0;
  const breaking: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    opened += 1;
    if (opened > 1 || response.body === null) {
      return response;
    }
    // The first connection ends with the first event.
    const reader = response.body.getReader();
    let text = "";
    const cut = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = await reader.read();
        if (value !== undefined) {
          controller.enqueue(value);
          text += new TextDecoder().decode(value);
        }
        if (text.includes("data:")) {
          await reader.cancel();
          controller.error(new TypeError("the connection broke"));
        }
      },
    });
    return new Response(cut, { status: response.status, headers: response.headers });
  };
  const ending = new AbortController();
  const { trx } = await live().createOrder(cart());
  const [created] = (await live().findEvents({ trx })).data;
  assert.ok(created !== undefined);
  const type = ["order.created", "order.finished"] as const;
  const heard: string[] = [];
  const stream = live({ fetch: breaking }).streamEvents({ cursor: created.id, type, signal: ending.signal });
  const first = live().confirmOrder(trx);
  for await (const event of stream) {
    if ("trx" in event.data) {
      heard.push(`${event.type} ${event.data.seq}`);
    }
    if (heard.length === 1) {
      await first;
      await live().createOrder(cart());
    } else {
      ending.abort();
    }
  }
  assert.deepEqual(heard, ["order.finished 2", "order.created 1"]);
  assert.equal(opened, 2);
});

test("endpoints are made, changed and removed", async () => {
  const shop = live();
  const made = await shop.addWebhook({ url: "https://shop.example.com/hook" });
  assert.match(made.secret ?? "", /^whsec_/);
  assert.equal(made.disabledReason, null);
  const changed = await shop.changeWebhook(made.id, { description: "the till" });
  assert.equal(changed.description, "the till");
  assert.notEqual((await shop.rotateWebhook(made.id)).secret, made.secret);
  await shop.removeWebhook(made.id);
  assert.deepEqual((await shop.findWebhooks()).data, []);
});
