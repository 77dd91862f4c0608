import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';

/**
 * Encrypts and authenticates the messages between processes. NATS can drop and delay them, but not read or forge them.
 * Each pair of sender and recipient has its own key, derived from the fleet's secret, so that a message cannot be
 * passed to another recipient. The number of the message is the nonce of AES-256-GCM: a sender counts the messages to
 * each recipient, and its incarnation, a random ID, is never used again.
 *
 * A sealed message consists of the format version (1 byte), the sender's incarnation (16 bytes), the number (8 bytes,
 * big-endian), the ciphertext, and the tag (16 bytes).
 */

const formatVersion = 1;
const idBytes = 16;
const headerBytes = 1 + idBytes + 8;
const tagBytes = 16;
/** Maximum size of a message before it is sealed. */
export const maxPlainBytes = 256 * 1024;
export const maxSealedBytes = headerBytes + maxPlainBytes + tagBytes;
/** Maximum number of derived keys that are kept. A fleet has few processes, and two keys for each pair. */
const maxKeys = 256;

/** The recipient of a message for all processes. */
export const everyone = '0'.repeat(2 * idBytes);

/** The reason for refusing a message, either before decryption or because its tag is wrong. */
export type SealFault = 'oversized' | 'truncated' | 'unknown_format' | 'forged';

export interface Opened {
  /** Incarnation of the sender. */
  readonly sender: string;
  readonly number: number;
  readonly plain: Buffer;
}

/** Seals the messages of one process, and opens the messages that it receives. */
export class Seal {
  readonly #secret: Buffer;
  readonly #own: string;
  /** The number of the last message to each recipient. */
  readonly #sent = new Map<string, number>();
  readonly #keys = new Map<string, Buffer>();

  /**
   * @param secret 32 bytes that only the processes of the fleet have
   * @param own incarnation of this process, 32 hexadecimal digits
   */
  constructor(secret: Buffer, own: string) {
    if (!/^[0-9a-f]{32}$/.test(own)) throw new Error('an incarnation has 32 hexadecimal digits');
    this.#secret = secret;
    this.#own = own;
  }

  /** Returns the number of the last message to the recipient; 0 if there was none. */
  sentTo(to: string): number {
    return this.#sent.get(to) ?? 0;
  }

  /** Counts a message that is not sent, so that the recipient notices that it is missing. */
  skip(to: string): void {
    this.#sent.set(to, this.sentTo(to) + 1);
  }

  /** @param to incarnation of the recipient, or {@link everyone} */
  seal(to: string, plain: Buffer): Buffer {
    if (plain.length > maxPlainBytes) throw new Error('the message is too large');
    this.skip(to);
    const header = Buffer.alloc(headerBytes);
    header.writeUInt8(formatVersion);
    header.write(this.#own, 1, 'hex');
    header.writeBigUInt64BE(BigInt(this.sentTo(to)), 1 + idBytes);
    const cipher = createCipheriv('aes-256-gcm', this.#keyFor(this.#own, to), nonceOf(header));
    cipher.setAAD(header);
    return Buffer.concat([header, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  /** @param to the recipient of the subject that the message arrived on: {@link everyone}, or this process */
  open(to: string, bytes: Buffer): Opened | SealFault {
    if (bytes.length > maxSealedBytes) return 'oversized';
    if (bytes.length < headerBytes + tagBytes) return 'truncated';
    if (bytes.readUInt8() !== formatVersion) return 'unknown_format';
    const header = bytes.subarray(0, headerBytes);
    const sender = header.toString('hex', 1, 1 + idBytes);
    const number = header.readBigUInt64BE(1 + idBytes);
    if (number > BigInt(Number.MAX_SAFE_INTEGER)) return 'forged';
    const key = this.#keyFor(sender, to);
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(header), { authTagLength: tagBytes });
    decipher.setAAD(header);
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(headerBytes, -tagBytes)), decipher.final()]);
      return { sender, number: Number(number), plain };
    } catch {
      return 'forged';
    }
  }

  #keyFor(sender: string, to: string): Buffer {
    const info = sender + to;
    const known = this.#keys.get(info);
    if (known !== undefined) return known;
    const key = Buffer.from(hkdfSync('sha256', this.#secret, '', `muster bus message v1 ${info}`, 32));
    if (this.#keys.size >= maxKeys) this.#keys.delete(this.#keys.keys().next().value as string);
    this.#keys.set(info, key);
    return key;
  }
}

/** Returns the number of the message, preceded by four zero bytes. */
const nonceOf = (header: Buffer): Buffer => Buffer.concat([Buffer.alloc(4), header.subarray(1 + idBytes)]);
