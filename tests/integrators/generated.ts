// A program on types that openapi-typescript made of the OpenAPI document: it compiles, and it sells.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";

import type { components, paths } from "./voucherd.js";

type Json = "application/json" | "application/problem+json";
const shop = createClient<paths, Json>({
  baseUrl: process.env["VOUCHERD_URL"] ?? "",
  headers: {
    Authorization: `Bearer ${process.env["VOUCHERD_KEY"] ?? ""}`,
    Accept: "application/json, application/problem+json",
  },
});

// Create: nothing but what is needed.
const body = { items: [{ productSlug: "gift-10", amount: 2 }], paymentCurrency: "EUR" };
const created = await shop.POST("/api/1.03/order", { body });
assert.equal(created.error, undefined);
assert.equal(created.data?.orderStatus, "created");
const trx = created.data.trx;

// Confirm: a finished line has its code.
const confirmed = await shop.PATCH("/api/1.03/order/confirm/{trx}", { params: { path: { trx } } });
assert.ok(confirmed.data !== undefined);
const codes = confirmed.data.items.flatMap((item) =>
  item.orderLines.flatMap((line): string[] =>
    line.status === "finished" && line.voucherCode !== null ? [line.voucherCode] : [],
  ),
);
assert.equal(codes.length, 2);

// Find.
const found = await shop.GET("/api/1.03/order/{trx}", { params: { path: { trx } } });
assert.equal(found.data?.orderStatus, "finished");

// List: by pages, and by cursors, which a default of the page would have broken.
const page = await shop.GET("/api/1.03/order", { params: { query: { limit: 1 } } });
assert.equal(page.data?.metadata.page, 1);
const walk = await shop.GET("/api/1.03/order", { params: { query: { cursor: "", limit: 1 } } });
assert.equal(walk.data?.data[0]?.trx, trx);

// An error, typed.
const missing = await shop.GET("/api/1.03/order/{trx}", { params: { path: { trx: "TRX0" } } });
const problem: components["schemas"]["Problem"] | undefined = missing.error;
assert.equal(problem?.code, "order_not_found");
const none = await shop.POST("/api/1.03/order", { body: { items: [], paymentCurrency: "EUR" } });
assert.deepEqual([none.error?.code, none.error?.field], ["bad_input", "items"]);

// A webhook with nothing but its address, and what may have disabled it.
const hook = await shop.POST("/api/1.03/webhook", { body: { url: "https://shop.example.com/hook" } });
const reason: "gone" | "failing" | null | undefined = hook.data?.disabledReason;
assert.equal(reason, null);
console.log("sold", codes.length);
