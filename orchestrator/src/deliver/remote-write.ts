import { readFile } from 'node:fs/promises';
import protobuf from 'protobufjs/light.js';
import snappy from 'snappyjs';
import { agentSeries } from '../domain/fleet/agent-series.ts';
import type { NamedSamples, WriteSeries } from '../domain/fleet/sample-forwarding.ts';
import { type SendLimits, send } from './send.ts';

/**
 * Sends samples with version 1 of the Prometheus remote write protocol: a POST of a protobuf message, compressed with
 * Snappy.
 */

const field = (type: string, id: number, rule?: 'repeated') => (rule ? { rule, type, id } : { type, id });
const writeRequest = protobuf.Root.fromJSON({
  nested: {
    WriteRequest: { fields: { timeseries: field('TimeSeries', 1, 'repeated') } },
    TimeSeries: { fields: { labels: field('Label', 1, 'repeated'), samples: field('Sample', 2, 'repeated') } },
    Label: { fields: { name: field('string', 1), value: field('string', 2) } },
    Sample: { fields: { value: field('double', 1), timestamp: field('int64', 2) } },
  },
}).lookupType('WriteRequest');

/** Encodes the message that contains several agents' samples. The protocol requires labels sorted by name. */
function writeRequestOf(batch: readonly NamedSamples[]): Uint8Array {
  const timeseries = [];
  for (const { nodeId, name, samples } of batch)
    for (const series of agentSeries) {
      const points = samples.flatMap((sample) => {
        const value = series.of(sample);
        return value === null ? [] : [{ value, timestamp: sample.collected_at * 1000 }];
      });
      if (points.length === 0) continue;
      const labels = [
        { name: '__name__', value: series.name },
        { name: 'job', value: 'muster-agents' },
        ...(name === null ? [] : [{ name: 'name', value: name }]),
        { name: 'node_id', value: nodeId },
      ];
      timeseries.push({ labels, samples: points });
    }
  return snappy.compress(writeRequest.encode({ timeseries }).finish());
}

export type Credentials =
  | { readonly bearerTokenFile: string }
  | { readonly username: string; readonly passwordFile: string | null }
  | null;

/** Returns the header with the credentials. Reads the files for each request, because operators may replace them. */
async function authorization(credentials: Credentials): Promise<Record<string, string>> {
  if (credentials === null) return {};
  const text = async (file: string) => (await readFile(file, 'utf8')).trim();
  if ('bearerTokenFile' in credentials) return { authorization: `Bearer ${await text(credentials.bearerTokenFile)}` };
  const password = credentials.passwordFile === null ? '' : await text(credentials.passwordFile);
  return { authorization: `Basic ${Buffer.from(`${credentials.username}:${password}`).toString('base64')}` };
}

export interface RemoteWriteOptions extends Pick<SendLimits, 'denyPrivate' | 'resolve'> {
  readonly url: string;
  readonly credentials: Credentials;
  readonly version: string;
}

const reasonBytes = 512;

export function createRemoteWrite({
  url,
  credentials,
  version,
  denyPrivate,
  resolve,
}: RemoteWriteOptions): WriteSeries {
  return async (batch, { timeoutMs, signal }) => {
    let proof: Record<string, string>;
    try {
      proof = await authorization(credentials);
    } catch (error) {
      return { status: null, reason: `the credentials cannot be read: ${(error as Error).message}` };
    }
    const headers = {
      'user-agent': `Muster/${version}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
      ...proof,
    };
    const limits = { timeoutMs, denyPrivate, signal, resolve, reasonBytes };
    return send({ url, headers, body: writeRequestOf(batch) }, limits);
  };
}
