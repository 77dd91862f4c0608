import { type Hello, handshakeBytes, limits, type PinSource, supportedProtocolVersions } from '@muster/protocol/wire';
import type { OpenOperation } from '../converge/engine.ts';
import type { ShownKey } from './identity.ts';

/** Data about this agent process for each hello. */
export interface Introduction {
  agentVersion: string;
  instanceId: string;
  hostname: string;
}

/**
 * Builds the hello for one connection.
 * @param connection the TLS exporter, the nonce of the challenge, and the key whose possession TLS proved
 */
export function makeHello(
  { key, statement, earlier }: ShownKey,
  introduction: Introduction,
  connection: { exporter: Buffer; nonce: Buffer; orchestratorKey: Buffer },
  state: {
    pinSource: PinSource;
    token: string | null;
    attributes: Record<string, string>;
    openOperations: readonly OpenOperation[];
    /** Null if the orchestrator does not support this field. */
    clockMs: number | null;
  },
): Hello {
  const versions = [...supportedProtocolVersions];
  const signature = key.sign(handshakeBytes({ ...connection, agentKey: key.publicKey, versions }));
  return {
    type: 'hello',
    versions,
    agent_version: introduction.agentVersion,
    public_key: key.publicKey.toString('hex'),
    signature: signature.toString('hex'),
    ...(statement === null ? {} : { key_statement: statement }),
    ...(earlier.length === 0 ? {} : { earlier_statements: [...earlier] }),
    instance_id: introduction.instanceId,
    pin_source: state.pinSource,
    hostname: introduction.hostname,
    token: state.token,
    attributes: fitAttributes(state.attributes),
    ...(state.clockMs === null ? {} : { clock_ms: Math.max(0, Math.round(state.clockMs)) }),
    open_operations: state.openOperations.slice(0, 64),
  };
}

/**
 * Truncates attributes to the frame limits. This is a safeguard: the collector applies the same limits and prioritizes
 * the most important attributes.
 */
export function fitAttributes(attributes: Record<string, string>): Record<string, string> {
  const fitting: [string, string][] = [];
  let bytes = 0;
  for (const key of Object.keys(attributes).sort()) {
    if (key === '' || key.length > 128) continue;
    const value = attributes[key]!.slice(0, limits.maxAttributeLength);
    const more = Buffer.byteLength(JSON.stringify([key, value]));
    if (fitting.length >= limits.maxAttributes || bytes + more > limits.attributesBytes) continue;
    bytes += more;
    fitting.push([key, value]);
  }
  return Object.fromEntries(fitting);
}
