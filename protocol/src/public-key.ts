/** The field's prime, 2^255 - 19: a canonical y is below it. */
const prime = 2n ** 255n - 19n;

/** The y of every point whose order divides 8. Whoever "owns" one of these can sign anything, or nothing, for it. */
const smallOrderY: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  BigInt('0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7'),
  BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826'),
]);

/**
 * True for 32 bytes that may serve as an Ed25519 public key: the one canonical encoding of its point, and a point not
 * of small order. Whether the point is on the curve is left to the first verification, which fails where it is not.
 */
export function isUsablePublicKey(raw: Uint8Array): boolean {
  if (raw.length !== 32) return false;
  let y = 0n;
  for (let i = 31; i >= 0; i--) y = (y << 8n) | BigInt(i === 31 ? raw[i]! & 0x7f : raw[i]!);
  return y < prime && !smallOrderY.has(y);
}
