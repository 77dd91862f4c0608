import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { chooseEncoding } from './content-encoding.ts';

/**
 * Compresses long answers in the thread pool if the client accepts it. The compressed length reveals nothing: no answer
 * contains both a secret and text that an attacker chose, and pages of other origins cannot send a token.
 */

/** Minimum bytes of a compressed answer. Compressing a shorter one costs more than sending it. */
const minCompressedBytes = 8 * 1024;

/** Low levels compress lists to a tenth of their size. Higher levels cost several times as much CPU for little gain. */
const options = { level: 3 };

/**
 * Decides whether an answer is compressed, and sets its headers.
 * @param length bytes of the answer, or a lower bound
 */
export function isCompressed(reply: FastifyReply, length: number): boolean {
  if (length < minCompressedBytes) return false;
  reply.header('vary', 'accept-encoding');
  const { method, headers } = reply.request;
  if (method === 'HEAD' || chooseEncoding(headers['accept-encoding']?.toString(), ['gzip']) === null) return false;
  reply.header('content-encoding', 'gzip');
  return true;
}

const compressed = promisify<string, { level: number }, Buffer>(gzip);
export const compressText = (text: string): Promise<Buffer> => compressed(text, options);

/** Compresses a stream at the pace of its reader. The result ends, fails, and is destroyed together with the source. */
export function compressStream(source: Readable): Readable {
  const packed = createGzip(options);
  // `pipeline` is not used, because it reports a disconnected client to the source as an error.
  source.once('error', (error) => packed.destroy(error));
  source.once('close', () => {
    if (!source.readableEnded) packed.destroy();
  });
  packed.once('close', () => source.destroy());
  return source.pipe(packed);
}
