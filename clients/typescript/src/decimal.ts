const FORM = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;

/** What a Decimal can be made of. A number must be whole: `0.1` is not a tenth to a computer. */
export type DecimalSource = Decimal | string | bigint | number;

/**
 * An exact decimal number: an amount of money, a rate, a share. It keeps the digits that it was written with and never
 * becomes a binary float. It can't be added with `+` or compared with `<`: use `plus` and `compare`.
 */
export class Decimal {
  /** The number as it is written, such as `25.00`. */
  readonly text: string;

  constructor(source: DecimalSource) {
    if (typeof source === "number" && !Number.isSafeInteger(source)) {
      throw new TypeError(`${source} is not a whole number: write it as a text, such as "0.10"`);
    }
    this.text = written(...read(String(source)));
  }

  /** The sum of all these; 0 if there are none. */
  static sum(values: Iterable<DecimalSource>): Decimal {
    let total = new Decimal(0);
    for (const value of values) {
      total = total.plus(value);
    }
    return total;
  }

  /** This and another one together, with as many digits as the longer one has. */
  plus(other: DecimalSource): Decimal {
    const [left, right, scale] = aligned(this, other);
    return made(left + right, scale);
  }

  /** This less another one. */
  minus(other: DecimalSource): Decimal {
    const [left, right, scale] = aligned(this, other);
    return made(left - right, scale);
  }

  /** This so many times, with all digits that the product has. */
  times(other: DecimalSource): Decimal {
    const [left, leftScale] = read(this.text);
    const [right, rightScale] = read(new Decimal(other).text);
    return made(left * right, leftScale + rightScale);
  }

  /** This with so many digits behind the point; half is rounded away from zero. */
  round(digits: number): Decimal {
    if (!Number.isInteger(digits) || digits < 0 || digits > 100) {
      throw new RangeError("digits must be a whole number from 0 to 100");
    }
    const [value, scale] = read(this.text);
    if (scale <= digits) {
      return made(value * 10n ** BigInt(digits - scale), digits);
    }
    const unit = 10n ** BigInt(scale - digits);
    const size = value < 0n ? -value : value;
    const rounded = (size + unit / 2n) / unit;
    return made(value < 0n ? -rounded : rounded, digits);
  }

  /** -1 if this is less than the other one, 1 if it is more, 0 if both are equal, however they are written. */
  compare(other: DecimalSource): -1 | 0 | 1 {
    const [left, right] = aligned(this, other);
    return left < right ? -1 : left > right ? 1 : 0;
  }

  /** Whether both are the same number: 1.5 equals 1.50. */
  equals(other: DecimalSource): boolean {
    return this.compare(other) === 0;
  }

  toString(): string {
    return this.text;
  }

  /** In JSON it is a text, because a number would be read as a float. */
  toJSON(): string {
    return this.text;
  }

  /** Only a text can be made of it by itself: what would add or compare it as a float fails. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint !== "string") {
      throw new TypeError("a Decimal is no number: use plus, minus, times or compare, or String() for its text");
    }
    return this.text;
  }
}

/** The digits as one whole number, and how many of them stand behind the point. */
function read(text: string): [bigint, number] {
  const found = FORM.exec(text);
  if (found === null) {
    throw new TypeError(`not a decimal number: ${JSON.stringify(text.slice(0, 40))}`);
  }
  const [, sign, whole, part = "", exponent = "0"] = found;
  const scale = part.length - Number(exponent);
  const digits = BigInt(`${whole}${part}`) * 10n ** BigInt(Math.max(-scale, 0));
  return [sign === "-" ? -digits : digits, Math.max(scale, 0)];
}

function aligned(one: Decimal, other: DecimalSource): [bigint, bigint, number] {
  const [left, leftScale] = read(one.text);
  const [right, rightScale] = read(new Decimal(other).text);
  const scale = Math.max(leftScale, rightScale);
  return [left * 10n ** BigInt(scale - leftScale), right * 10n ** BigInt(scale - rightScale), scale];
}

function made(value: bigint, scale: number): Decimal {
  return new Decimal(written(value, scale));
}

function written(value: bigint, scale: number): string {
  const size = (value < 0n ? -value : value).toString().padStart(scale + 1, "0");
  const sign = value < 0n ? "-" : "";
  return scale === 0 ? sign + size : `${sign}${size.slice(0, -scale)}.${size.slice(-scale)}`;
}
