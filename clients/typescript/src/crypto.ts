/** WebCrypto; Node 18 has it in a module instead of a global. */
export async function webcrypto(): Promise<Crypto> {
  if (globalThis.crypto !== undefined) {
    return globalThis.crypto;
  }
  // The name is no constant, so that bundlers for browsers do not look for the module.
  const name = "node:crypto";
  const found = (await import(name)) as { webcrypto: Crypto };
  return found.webcrypto;
}
