import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/**
 * A minimal OpenPGP v4 EdDSA key (RFC 4880) that apt accepts for an `InRelease` file, so that the tests need neither gpg
 * nor a key ring on this machine.
 */

const eddsa = 22;
const sha256 = 8;
const ed25519Oid = Buffer.from('092b06010401da470f01', 'hex');

const uint16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Encodes an integer of any length (RFC 4880, MPI): the length in bits, followed by the number. */
function mpi(bytes: Buffer): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const number = bytes.subarray(start === -1 ? bytes.length : start);
  const bits = number.length === 0 ? 0 : (number.length - 1) * 8 + (32 - Math.clz32(number[0] as number));
  return Buffer.concat([uint16(bits), number]);
}

function packet(tag: number, body: Buffer): Buffer {
  const { length } = body;
  const size = length < 192 ? Buffer.from([length]) : Buffer.from([((length - 192) >> 8) + 192, (length - 192) & 0xff]);
  return Buffer.concat([Buffer.from([0xc0 | tag]), size, body]);
}

const subpacket = (type: number, body: Buffer): Buffer => Buffer.concat([Buffer.from([body.length + 1, type]), body]);

function armour(title: string, bytes: Buffer): string {
  let crc = 0xb704ce;
  for (const byte of bytes) {
    crc ^= byte << 16;
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x800000 ? 0x1864cfb : 0);
  }
  const sum = uint32(crc & 0xffffff).subarray(1);
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return [
    `-----BEGIN PGP ${title}-----`,
    '',
    ...lines,
    `=${sum.toString('base64')}`,
    `-----END PGP ${title}-----`,
    '',
  ].join('\n');
}

export class SigningKey {
  /** ASCII-armored public key. */
  readonly publicKey: string;
  readonly #private: KeyObject;
  readonly #fingerprint: Buffer;
  readonly #created: number;

  /** @param name the owner's name, such as `Test <test@example.com>` */
  constructor(name: string) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const point = Buffer.from(publicKey.export({ format: 'jwk' }).x as string, 'base64url');
    // Backdated by one day, so that the key is valid even if a test sets the clock back.
    this.#created = Math.floor(Date.now() / 1000) - 86_400;
    this.#private = privateKey;
    const key = Buffer.concat([
      Buffer.from([4]),
      uint32(this.#created),
      Buffer.from([eddsa]),
      ed25519Oid,
      mpi(Buffer.concat([Buffer.from([0x40]), point])),
    ]);
    const hashedKey = Buffer.concat([Buffer.from([0x99]), uint16(key.length), key]);
    this.#fingerprint = createHash('sha1').update(hashedKey).digest();
    const owner = Buffer.from(name);
    const certified = Buffer.concat([hashedKey, Buffer.from([0xb4]), uint32(owner.length), owner]);
    const mayCertifyAndSign = subpacket(27, Buffer.from([3]));
    const certification = this.#signature(0x13, certified, mayCertifyAndSign);
    this.publicKey = armour('PUBLIC KEY BLOCK', Buffer.concat([packet(6, key), packet(13, owner), certification]));
  }

  #signature(type: number, data: Buffer, more: Buffer = Buffer.alloc(0)): Buffer {
    const hashed = Buffer.concat([
      subpacket(2, uint32(this.#created + 1)),
      subpacket(33, Buffer.concat([Buffer.from([4]), this.#fingerprint])),
      more,
    ]);
    const head = Buffer.concat([Buffer.from([4, type, eddsa, sha256]), uint16(hashed.length), hashed]);
    const tail = Buffer.concat([Buffer.from([4, 0xff]), uint32(head.length)]);
    const digest = createHash('sha256').update(data).update(head).update(tail).digest();
    const signed = sign(null, digest, this.#private);
    const issuer = subpacket(16, this.#fingerprint.subarray(-8));
    const halves = [mpi(signed.subarray(0, 32)), mpi(signed.subarray(32))];
    return packet(2, Buffer.concat([head, uint16(issuer.length), issuer, digest.subarray(0, 2), ...halves]));
  }

  /** Returns the text with a clear-text signature, as in `InRelease`. */
  clearSign(text: string): string {
    const lines = text.trimEnd().split('\n');
    const signature = this.#signature(0x01, Buffer.from(lines.map((line) => line.trimEnd()).join('\r\n')));
    const shown = lines.map((line) => (line.startsWith('-') ? `- ${line}` : line)).join('\n');
    return `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n${shown}\n${armour('SIGNATURE', signature)}`;
  }
}
