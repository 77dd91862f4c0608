import { signedContexts } from '../signed-contexts.ts';

/** The bytes that an agent signs on its TLS connection. The signature is valid only on this connection. */

export const exporterLabel = 'EXPORTER-muster-agent-hello';
export const exporterLength = 32;

export interface HandshakeBinding {
  /** `exportKeyingMaterial(exporterLength, exporterLabel)` of the TLS connection, 32 bytes. */
  exporter: Uint8Array;
  /** The orchestrator's nonce, 32 bytes. */
  nonce: Uint8Array;
  orchestratorKey: Uint8Array;
  agentKey: Uint8Array;
  /**
   * All versions that the agent offered, in order, so that a relay cannot remove a version without invalidating the
   * signature.
   */
  versions: readonly number[];
}

/**
 * Returns the bytes to sign: tag, exporter, nonce, both keys, and the offered versions. All parts except the last have
 * a fixed length, so that different bindings never yield the same bytes.
 * @throws RangeError if a part has the wrong length
 */
export function handshakeBytes(binding: HandshakeBinding): Uint8Array {
  const fixed = [binding.exporter, binding.nonce, binding.orchestratorKey, binding.agentKey];
  for (const part of fixed)
    if (part.length !== 32) throw new RangeError(`a part of the handshake has ${part.length} bytes instead of 32`);
  const tag = new TextEncoder().encode(signedContexts.agentHello);
  const bytes = new Uint8Array(tag.length + 4 * 32 + 4 * binding.versions.length);
  bytes.set(tag, 0);
  fixed.forEach((part, i) => {
    bytes.set(part, tag.length + 32 * i);
  });
  const view = new DataView(bytes.buffer);
  binding.versions.forEach((version, i) => {
    view.setUint32(tag.length + 4 * 32 + 4 * i, version);
  });
  return bytes;
}
