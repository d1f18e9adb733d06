import { Decimal } from "./decimal.js";

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const NUMBERS = new RegExp(NUMBER, "g");
/** A string, and the number or the list of numbers behind it if it is the name of a field. */
const TOKENS = new RegExp(
  String.raw`"([^"\\]*(?:\\.[^"\\]*)*)"(?:(\s*:\s*)(${NUMBER}|\[\s*${NUMBER}(?:\s*,\s*${NUMBER})*\s*\]))?`,
  "g",
);

/** The names of fields that are decimals. */
export function decimals(names: readonly string[]): ReadonlySet<string> {
  return new Set(names);
}

/** The value of a JSON text; fields of these names become Decimals, with the digits that they were sent with. */
export function parse(text: string, exact: ReadonlySet<string> = new Set()): unknown {
  if (exact.size === 0) {
    return JSON.parse(text);
  }
  // JSON.parse would make floats of them, so they go through it as texts.
  const quoted = text.replace(TOKENS, (whole, name: string, colon?: string, value?: string) =>
    value !== undefined && exact.has(name) ? `"${name}"${colon}${value.replace(NUMBERS, '"$&"')}` : whole,
  );
  return JSON.parse(quoted, (name, value: unknown) => (exact.has(name) ? revived(value) : value));
}

function revived(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(revived);
  }
  return typeof value === "string" ? new Decimal(value) : value;
}

/** A value as JSON; a Decimal is a number with its own digits. */
export function stringify(value: unknown): string {
  if (value instanceof Decimal) {
    return value.text;
  }
  if (Array.isArray(value)) {
    return `[${value.map((one) => (one === undefined ? "null" : stringify(one))).join(",")}]`;
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([, one]) => one !== undefined);
    return `{${fields.map(([name, one]) => `${JSON.stringify(name)}:${stringify(one)}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`${value} can't be sent`);
  }
  return JSON.stringify(value ?? null);
}
