import { agentVersionPattern } from './agent-message.ts';
import { limits } from './limits.ts';

/**
 * The fields of a hello that are read before its signature is verified.
 */
export interface HelloProof {
  /** Hex, 32 bytes. */
  readonly public_key: string;
  /** Hex, 64 bytes. */
  readonly signature: string;
  readonly versions: readonly number[];
  /** Version of the agent, for messages; null if malformed. */
  readonly agent_version: string | null;
}

const publicKey = /^[0-9a-f]{64}$/;
const signature = /^[0-9a-f]{128}$/;

/**
 * Reads the proof in a message. The message is hostile until its signature is verified. The cost does not depend on the
 * other fields.
 * @param json the parsed message
 * @returns the proof, or a description of the error
 */
export function readHelloProof(json: unknown): HelloProof | string {
  const type = messageType(json);
  if (type !== 'hello') return `${type} before the hello`;
  const given = json as Record<string, unknown>;
  const { versions } = given;
  if (typeof given.public_key !== 'string' || !publicKey.test(given.public_key))
    return 'a hello whose public_key is not 32 bytes in hex';
  if (typeof given.signature !== 'string' || !signature.test(given.signature))
    return 'a hello whose signature is not 64 bytes in hex';
  if (!Array.isArray(versions) || versions.length === 0 || versions.length > limits.helloVersions)
    return `a hello whose versions are not 1 to ${limits.helloVersions} numbers`;
  if (!versions.every((version) => Number.isSafeInteger(version) && version > 0))
    return 'a hello with a version that is not a positive integer';
  const agent_version =
    typeof given.agent_version === 'string' && agentVersionPattern.test(given.agent_version)
      ? given.agent_version
      : null;
  return { public_key: given.public_key, signature: given.signature, versions, agent_version };
}

/** Returns the type of a message that has not been validated, in a form that is safe to log. */
export function messageType(json: unknown): string {
  const type = typeof json === 'object' && json !== null && 'type' in json ? json.type : null;
  return typeof type === 'string' && /^[a-z_]{1,32}$/.test(type) ? type : 'a message of no known type';
}
