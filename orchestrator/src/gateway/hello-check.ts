import { verify } from 'node:crypto';
import { type HelloProof, handshakeBytes, negotiateVersion, supportedProtocolVersions } from '@muster/protocol/wire';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import { isUsablePublicKey, publicKeyFromRaw } from '../identity/ed25519-key.ts';

export type HelloVerdict = { version: number; agentKey: Buffer } | { refusal: Refusal };

const refusal = (code: Refusal['code'], message: string): HelloVerdict => ({
  refusal: { code, message, retry_after_secs: null },
});

/**
 * Checks that the hello proves possession of the agent's key on this connection, and negotiates the version. Checks the
 * signature first, so that a peer without a key learns nothing about the orchestrator.
 * @param connection keying material of the TLS connection, and the nonce that was sent on it
 */
export function checkHello(
  hello: HelloProof,
  connection: { exporter: Uint8Array; nonce: Uint8Array; orchestratorKey: Uint8Array },
): HelloVerdict {
  const agentKey = Buffer.from(hello.public_key, 'hex');
  if (!isUsablePublicKey(agentKey))
    return refusal('signature_invalid', 'the public key is of small order or not canonical');
  const bytes = handshakeBytes({ ...connection, agentKey, versions: hello.versions });
  if (!isSignedBy(agentKey, bytes, Buffer.from(hello.signature, 'hex')))
    return refusal('signature_invalid', 'the signature does not prove possession of the key on this connection');
  const version = negotiateVersion(hello.versions);
  const agentName = hello.agent_version === null ? 'the agent' : `agent ${hello.agent_version}`;
  if (version === null)
    return refusal(
      'version_unsupported',
      `this orchestrator supports protocol versions ${supportedProtocolVersions.join(', ')}, ${agentName} supports ${hello.versions.join(', ')}; install the agent version that matches the orchestrator`,
    );
  return { version, agentKey };
}

function isSignedBy(agentKey: Buffer, bytes: Uint8Array, signature: Buffer): boolean {
  try {
    return verify(null, bytes, publicKeyFromRaw(agentKey), signature);
  } catch {
    // `verify` throws if the key is not a point on the curve.
    return false;
  }
}
