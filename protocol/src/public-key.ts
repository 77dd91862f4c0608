/** The prime of the field, 2^255 - 19: a canonical y is smaller. */
const prime = 2n ** 255n - 19n;

/** The y of each point whose order divides 8. With such a public key, some signatures verify for any message. */
const smallOrderY: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  BigInt('0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7'),
  BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826'),
]);

/**
 * True for 32 bytes that are usable as an Ed25519 public key: the canonical encoding of a point that does not have a
 * small order. A point that is not on the curve fails at the first verification.
 */
export function isUsablePublicKey(raw: Uint8Array): boolean {
  if (raw.length !== 32) return false;
  let y = 0n;
  for (let i = 31; i >= 0; i--) y = (y << 8n) | BigInt(i === 31 ? raw[i]! & 0x7f : raw[i]!);
  return y < prime && !smallOrderY.has(y);
}
