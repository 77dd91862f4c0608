import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { chooseEncoding } from './content-encoding.ts';

/**
 * Compresses long responses in the thread pool if the client accepts it. Responses are not vulnerable to the BREACH
 * attack, because no response contains both a secret and text that an attacker controls, and pages from other origins
 * cannot send a token.
 */

/** Minimum length of responses to compress, in bytes. Compressing a shorter response costs more than sending it. */
export const minCompressedBytes = 8 * 1024;

/**
 * Low levels compress lists to a tenth of their size. Higher levels need several times the CPU time for little gain.
 */
const options = { level: 3 };

/**
 * Decides whether to compress a response, and sets its headers.
 * @param length length of the response in bytes, or a lower bound
 */
export function isCompressed(reply: FastifyReply, length: number): boolean {
  if (length < minCompressedBytes) return false;
  reply.header('vary', 'accept-encoding');
  const { method, headers } = reply.request;
  if (method === 'HEAD' || chooseEncoding(headers['accept-encoding']?.toString(), ['gzip']) === null) return false;
  reply.header('content-encoding', 'gzip');
  return true;
}

const compressed = promisify<string | Buffer, { level: number }, Buffer>(gzip);
const results = new WeakMap<Buffer, Promise<Buffer>>();

/** Compresses JSON. A `Buffer`, such as a page of agents that several requests read, is compressed only once. */
export function compressJson(json: string | Buffer): Promise<Buffer> {
  if (typeof json === 'string') return compressed(json, options);
  let result = results.get(json);
  if (result === undefined) {
    result = compressed(json, options);
    results.set(json, result);
    result.catch(() => results.delete(json));
  }
  return result;
}

/**
 * Returns a stream that compresses the source at its reader's pace. The two streams end, fail, and are destroyed
 * together.
 */
export function compressStream(source: Readable): Readable {
  const packed = createGzip(options);
  // `pipeline` would report a client's disconnect to the source as an error.
  source.once('error', (error) => packed.destroy(error));
  source.once('close', () => {
    if (!source.readableEnded) packed.destroy();
  });
  packed.once('close', () => source.destroy());
  return source.pipe(packed);
}
