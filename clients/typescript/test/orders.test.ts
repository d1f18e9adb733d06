import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Decimal, linesWithCodes, productOf, WaitTimeoutError, type ExtendedOrder } from "voucherd-client";

import { cart, live, sandbox, variable } from "./shop.js";

test("an order is created, confirmed and found, and its money is exact", async () => {
  const shop = live();
  const [before] = await shop.findAccounts({ currency: "EUR" });
  const created = await shop.createOrder(cart(2));
  assert.equal(created.orderStatus, "created");
  assert.ok(created.priceInclVat instanceof Decimal);
  assert.match(created.priceInclVat.text, /^\d+\.\d\d$/);

  const paid = await shop.confirmOrder(created.trx);
  assert.equal(paid.orderStatus, "finished");
  const codes: string[] = linesWithCodes(paid).map((line) => line.voucherCode);
  const links: string[] = linesWithCodes(paid).map((line) => line.redemptionLink);
  assert.ok(links.every((link) => link.startsWith("http")));
  assert.equal(new Set(codes).size, 2);
  const found = await shop.findOrder(created.trx);
  assert.deepEqual(linesWithCodes(found).map((line) => line.voucherCode), codes);

  const [after] = await shop.findAccounts({ currency: "EUR" });
  assert.ok(before !== undefined && after !== undefined);
  assert.equal(before.totalAmount.minus(paid.priceInclVat).text, after.totalAmount.text);
  const total = Decimal.sum(paid.items.map((item) => item.totalPriceInclVatInPaymentCurrency));
  assert.ok(total.equals(paid.priceInclVat));
});

test("a finished line has its code by its type, and a line that is not has none", async () => {
  const shop = live();
  const created = await shop.createOrder(cart());
  for (const order of [created, await shop.confirmOrder(created.trx)]) {
    for (const line of order.items.flatMap((item) => item.orderLines)) {
      if (line.status === "finished" && line.voucherCode !== null) {
        const code: string = line.voucherCode;
        assert.ok(code.length > 0);
        const described = productOf(line);
        assert.equal(described.slug, line.productSlug);
        assert.ok(described.faceValue instanceof Decimal);
      } else {
        assert.equal(order.orderStatus, "created");
      }
    }
  }
});

test("a face value is sent digit by digit", async () => {
  const shop = sandbox();
  const items = [{ productSlug: variable, amount: 1, faceValue: new Decimal("25.50") }];
  const order = await shop.createOrder({ items, paymentCurrency: "EUR" });
  assert.equal(order.items[0]?.faceValueAmount.text, "25.50");
  const priced = await shop.findProduct(variable, { faceValue: new Decimal("25.50") });
  assert.ok(priced.priceAmount instanceof Decimal);
});

test("a quote says what Create would say, and keeps nothing", async () => {
  const quote = await live().quoteOrder(cart(3));
  assert.ok(quote.isAvailable);
  assert.equal(quote.items[0]?.amount, 3);
  assert.ok(quote.priceInclVat.compare(0) > 0);
});

test("an order that is not confirmed is deleted, one that is finished is not", async () => {
  const shop = live();
  const { trx } = await shop.createOrder(cart());
  assert.equal(await shop.cancelOrder(trx), null);
});

test("an order that comes later is waited for", async () => {
  const shop = sandbox();
  const { trx } = await shop.createOrder(cart());
  const confirmed = await shop.confirmOrder(trx, { sandboxOutcome: "slow:3" });
  await assert.rejects(shop.wait((await shop.createOrder(cart())).trx, { timeoutMs: 1 }), WaitTimeoutError);
  const order: ExtendedOrder = confirmed.orderStatus === "finished" ? confirmed : await shop.wait(trx);
  assert.equal(order.orderStatus, "finished");
  assert.equal(linesWithCodes(order).length, 1);
});

test("a resolved order is finished or cancelled, and wait returns either", async () => {
  const shop = sandbox();
  const { trx } = await shop.createOrder(cart());
  const resolved = await shop.resolveOrder(trx, { sandboxOutcome: "cancelled" });
  assert.equal(resolved.orderStatus, "cancelled");
  assert.equal((await shop.wait(trx)).orderStatus, "cancelled");
});

test("iterators walk through all pages", async () => {
  const shop = live();
  const reference = randomUUID();
  const made = [];
  for (let count = 0; count < 3; count += 1) {
    made.push((await shop.createOrder(cart(1, reference))).trx);
  }
  const found = [];
  for await (const order of shop.allOrders({ reference, limit: 1, sortOrder: "asc" })) {
    found.push(order.trx);
  }
  assert.deepEqual(found, made);
  const page = await shop.findOrders({ reference, page: 2, limit: 1 });
  assert.equal(page.metadata.totalItems, 3);

  const { trx } = await shop.createOrder(cart(3));
  await shop.confirmOrder(trx);
  const lines = [];
  for await (const line of shop.allOrderLines(trx, { limit: 2 })) {
    lines.push(line.tag);
  }
  assert.equal(new Set(lines).size, 3);
  assert.equal((await shop.downloadCodes(trx)).trim().split("\n").length, 4);
});

test("a statement adds up to the balance", async () => {
  const shop = live();
  let total = new Decimal(0);
  let last: Decimal | undefined;
  for await (const entry of shop.allAccountEntries("EUR", { limit: 2 })) {
    total = total.plus(entry.amount);
    last ??= entry.balanceAfter;
  }
  assert.equal(total.text, last?.text);
  assert.match(await shop.findAccountEntriesAsCsv("EUR"), /^.*balance/i);
});

test("products are found, one by one and all of them", async () => {
  const shop = live();
  const slugs = [];
  for await (const product of shop.allProducts({ limit: 1 })) {
    slugs.push(product.slug);
    if (slugs.length === 2) {
      break;
    }
  }
  assert.equal(new Set(slugs).size, 2);
  const changes = shop.allProductChanges({ since: "now" });
  const { done, value } = await changes.next();
  assert.ok(done === true && value.length > 0);
});
