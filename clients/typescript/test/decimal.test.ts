import assert from "node:assert/strict";
import { test } from "node:test";

import { Decimal } from "voucherd-client";

test("sums are exact where floats are not", () => {
  assert.equal(new Decimal("0.10").plus("0.20").text, "0.30");
  assert.equal(Decimal.sum(Array.from({ length: 1_000 }, () => "0.07")).text, "70.00");
  assert.equal(new Decimal("90071992547409931.99").plus("0.01").text, "90071992547409932.00");
});

test("digits stay as they were written", () => {
  assert.equal(new Decimal("25.00").text, "25.00");
  assert.equal(new Decimal("1000").text, "1000");
  assert.equal(new Decimal("-0.05").text, "-0.05");
  assert.equal(new Decimal("1.5e3").text, "1500");
  assert.equal(new Decimal("1.5e-3").text, "0.0015");
  assert.equal(new Decimal(7n).text, "7");
});

test("less, more, times and rounding", () => {
  assert.equal(new Decimal("1.00").minus("1.05").text, "-0.05");
  assert.equal(new Decimal("9.50").times(3).text, "28.50");
  assert.equal(new Decimal("2.50").times("0.21").round(2).text, "0.53");
  assert.equal(new Decimal("-0.525").round(2).text, "-0.53");
  assert.equal(new Decimal("3").round(2).text, "3.00");
});

test("numbers are compared by their value, not by their text", () => {
  assert.equal(new Decimal("9").compare("10.00"), -1);
  assert.equal(new Decimal("10.50").compare("10.5"), 0);
  assert.ok(new Decimal("1.50").equals("1.5"));
  assert.notDeepEqual(new Decimal("1"), new Decimal("2"));
});

test("a decimal never turns into a float", () => {
  const one = new Decimal("1.10");
  assert.throws(() => Number(one), TypeError);
  // @ts-expect-error: the compiler refuses it, and so does the program.
  assert.throws(() => one + one, TypeError);
  assert.throws(() => one < new Decimal("2"), TypeError);
  assert.equal(`${one}`, "1.10");
  assert.equal(JSON.stringify({ one }), '{"one":"1.10"}');
  assert.throws(() => new Decimal(0.1), TypeError);
});

test("what is no number is refused", () => {
  for (const text of ["", "1,5", "abc", "1.", ".5", "NaN", "Infinity", "0x10", "1e9999"]) {
    assert.throws(() => new Decimal(text), TypeError, text);
  }
});
