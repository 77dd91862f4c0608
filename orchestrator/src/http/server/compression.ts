import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { chooseEncoding } from './content-encoding.ts';

/**
 * Long answers are compressed for who takes that, in the thread pool. None of them holds both a secret and what a stranger
 * chose: what can be learned from lengths is nothing that the asker, who shows a token that no page can send, did not have.
 */

/** Bytes. Shorter answers cost more to compress than to send. */
const leastCompressed = 8 * 1024;

/** Lists of records shrink to a tenth at the lowest levels; higher ones cost several times as much for little. */
const options = { level: 3 };

/**
 * Settles whether an answer is compressed, and says so in its headers. For whoever sends it next.
 * @param length how long it is, or at least is
 */
export function isCompressed(reply: FastifyReply, length: number): boolean {
  if (length < leastCompressed) return false;
  reply.header('vary', 'accept-encoding');
  const { method, headers } = reply.request;
  if (method === 'HEAD' || chooseEncoding(headers['accept-encoding']?.toString(), ['gzip']) === null) return false;
  reply.header('content-encoding', 'gzip');
  return true;
}

const compressed = promisify<string, { level: number }, Buffer>(gzip);
export const compressText = (text: string): Promise<Buffer> => compressed(text, options);

/** As it is read and no faster; ends, fails and is let go of together with its source. */
export function compressStream(source: Readable): Readable {
  const packed = createGzip(options);
  // Not a pipeline: that tells the source of a client's hanging up as of a fault of its own.
  source.once('error', (error) => packed.destroy(error));
  source.once('close', () => {
    if (!source.readableEnded) packed.destroy();
  });
  packed.once('close', () => source.destroy());
  return source.pipe(packed);
}
