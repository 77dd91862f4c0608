// OpenSSH keys: public lines, private key files, and signatures by ssh-agent.
import type { ParsedKey } from 'ssh2';
import { readSshKeyHead } from '../../../client/src/openssh-key.ts';

/** The 32 bytes of an Ed25519 public key. */
export type PublicKey = Buffer;

const kind = 'ssh-ed25519';
// The constant bytes before the key. RFC 4253, section 5: the length precedes each field.
const head = Buffer.concat([Buffer.from([0, 0, 0, kind.length]), Buffer.from(kind), Buffer.from([0, 0, 0, 32])]);

function ofBlob(blob: Buffer): PublicKey | null {
  return blob.length === head.length + 32 && blob.subarray(0, head.length).equals(head)
    ? blob.subarray(head.length)
    : null;
}
const blobOf = (key: PublicKey): Buffer => Buffer.concat([head, key]);

/** Returns the line of a `.pub` file as `ssh-keygen` writes it. */
export const publicLine = (key: PublicKey, comment: string): string =>
  `${kind} ${blobOf(key).toString('base64')}${comment === '' ? '' : ` ${comment}`}\n`;

/**
 * Parses the line of a `.pub` file.
 * @returns null for anything other than an Ed25519 public key
 */
export function readPublicLine(text: string): { key: PublicKey; comment: string } | null {
  const [, base64, comment] = /^ssh-ed25519 ([A-Za-z0-9+/]+={0,2})(?:[ \t]+([^\r\n]*))?\s*$/.exec(text.trim()) ?? [];
  const key = base64 === undefined ? null : ofBlob(Buffer.from(base64, 'base64'));
  return key === null ? null : { key, comment: (comment ?? '').trim() };
}

export const isPrivateFile = (text: string): boolean => text.includes('-----BEGIN OPENSSH PRIVATE KEY-----');

/**
 * Parses the part of a private key file that requires no passphrase (PROTOCOL.key in OpenSSH).
 * @returns null if the file is damaged or has no Ed25519 key
 */
export function readPrivateHead(text: string): { key: PublicKey; sealed: boolean } | null {
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]+?)-----END OPENSSH PRIVATE KEY-----/.exec(text)?.[1];
  try {
    const head = readSshKeyHead(Buffer.from(body ?? '', 'base64'));
    const key = head === null ? null : ofBlob(Buffer.from(head.publicBlob));
    return head === null || key === null ? null : { key, sealed: head.cipher !== 'none' };
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

type Signs = (message: Uint8Array) => Buffer;

/**
 * Opens a private key file.
 * @returns a function that signs with the key; null if the passphrase is wrong
 * @throws Error if the file is damaged
 */
export async function openPrivateFile(text: string, passphrase: string | null): Promise<Signs | null> {
  const { utils } = await loadSsh();
  const parsed: ParsedKey | Error | (ParsedKey | Error)[] = utils.parseKey(text, passphrase ?? undefined);
  const key = Array.isArray(parsed) ? parsed[0]! : parsed;
  if (key instanceof Error) {
    if (/bad passphrase|integrity/i.test(key.message)) return null;
    throw key;
  }
  return (message) => {
    const signature: Buffer | Error = key.sign(Buffer.from(message));
    if (signature instanceof Error) throw signature;
    return signature;
  };
}

/**
 * Returns the Ed25519 keys in ssh-agent.
 * @param socket SSH_AUTH_SOCK
 */
export async function keysOfAgent(socket: string): Promise<{ key: PublicKey; comment: string }[]> {
  const { OpenSSHAgent } = await loadSsh();
  const found = await new Promise<ParsedKey[]>((resolve, reject) => {
    // The declared type allows several key formats, but `OpenSSHAgent` returns only parsed keys.
    new OpenSSHAgent(socket).getIdentities((error, keys) =>
      error ? reject(error) : resolve((keys ?? []) as ParsedKey[]),
    );
  });
  return found.flatMap((each) => {
    const key = each.type === kind ? ofBlob(each.getPublicSSH()) : null;
    return key === null ? [] : [{ key, comment: each.comment ?? '' }];
  });
}

/**
 * Signs with a key in ssh-agent.
 * @returns the 64 bytes of the signature
 */
export async function signByAgent(socket: string, key: PublicKey, message: Uint8Array): Promise<Buffer> {
  const { OpenSSHAgent } = await loadSsh();
  return await new Promise((resolve, reject) => {
    new OpenSSHAgent(socket).sign(blobOf(key), Buffer.from(message), (error, signature) => {
      if (error) reject(error);
      else if (signature?.length !== 64) reject(new Error('its signature does not have 64 bytes'));
      else resolve(signature);
    });
  });
}

/** Imports ssh2 on demand, because the import takes 100 ms. */
const loadSsh = async (): Promise<typeof import('ssh2')> => {
  const loaded = await import('ssh2');
  return loaded.default ?? loaded;
};
