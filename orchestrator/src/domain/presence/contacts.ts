/**
 * Encodes when a process last heard from its agents: for each agent, the first 8 bytes of its ID, the seconds since it
 * was heard (4 bytes, unsigned), and the seconds that its clock is ahead (4 bytes, signed).
 */

const entryBytes = 16;
const idDigits = 16;

export interface Contact {
  readonly nodeId: string;
  /** Unix seconds. */
  readonly heardAt: number;
  /** Seconds that the agent's clock is ahead. */
  readonly ahead: number;
}

/** @param at Unix seconds */
export function encodeContacts(contacts: readonly Contact[], at: number): Buffer {
  const bytes = Buffer.alloc(contacts.length * entryBytes);
  contacts.forEach(({ nodeId, heardAt, ahead }, index) => {
    const start = index * entryBytes;
    bytes.write(nodeId.slice(0, idDigits), start, 'hex');
    bytes.writeUInt32BE(Math.min(Math.max(at - heardAt, 0), 0xffff_ffff), start + 8);
    bytes.writeInt32BE(Math.max(-0x8000_0000, Math.min(ahead, 0x7fff_ffff)), start + 12);
  });
  return bytes;
}

export type Contacts = ReadonlyMap<string, Omit<Contact, 'nodeId'>>;

/** @returns the contacts by {@link contactKey} */
export function decodeContacts(bytes: Uint8Array, at: number): Contacts {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const contacts = new Map<string, Omit<Contact, 'nodeId'>>();
  for (let start = 0; start + entryBytes <= buffer.length; start += entryBytes)
    contacts.set(buffer.toString('hex', start, start + idDigits / 2), {
      heardAt: at - buffer.readUInt32BE(start + 8),
      ahead: buffer.readInt32BE(start + 12),
    });
  return contacts;
}

export const contactKey = (nodeId: string): string => nodeId.slice(0, idDigits);
