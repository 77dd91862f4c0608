/** The prime of the curve's field. A canonical y-coordinate is smaller. */
const prime = 2n ** 255n - 19n;

/**
 * The y-coordinates of the points whose order divides 8. Under such a public key, some signatures are valid for any
 * message.
 */
const smallOrderY: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  BigInt('0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7'),
  BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826'),
]);

/**
 * Reports whether bytes are usable as an Ed25519 public key: 32 bytes that are the canonical encoding of a point that
 * does not have small order. Does not check that the point is on the curve; if it is not, the first verification fails.
 */
export function isUsablePublicKey(raw: Uint8Array): boolean {
  if (raw.length !== 32) return false;
  let y = 0n;
  for (let i = 31; i >= 0; i--) y = (y << 8n) | BigInt(i === 31 ? raw[i]! & 0x7f : raw[i]!);
  return y < prime && !smallOrderY.has(y);
}
