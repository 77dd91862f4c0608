import { Readable } from 'node:stream';
import { MusterError } from '@muster/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../../../lib/src/clock.ts';
import { networkOf } from '../../client-network.ts';
import { RefusedRequest } from '../server/problem.ts';
import { type InstallFile, type InstallFiles, openInstallFile } from './install-files.ts';

/**
 * Serves the installation script and packages. All are public, because they contain no secrets, and a new machine has
 * no credentials. The number of simultaneous transfers is limited and other clients must retry, so a thousand machines
 * are served one group after another. Slow transfers are aborted.
 */

/** Maximum number of simultaneous transfers. */
const maxTransfers = 24;
/** Maximum number of simultaneous transfers to one IPv4 address or IPv6 network. */
const maxPerAddress = 8;
/** Minimum number of bytes per `checkMs` milliseconds. A slower transfer is aborted. */
const minBytes = 256 * 1024;
const checkMs = 15_000;

/** Maximum size of a response that does not count as a transfer, in bytes. */
const smallBytes = 64 * 1024;
const pieceBytes = 256 * 1024;

export function registerInstall(app: FastifyInstance, files: InstallFiles, clock: Clock): void {
  const slots = new TransferSlots();
  for (const [name, file] of files) app.get(`/install/${name}`, (request, reply) => answer(file, request, reply));
  app.get('/install/*', () => {
    if (files.size > 0) throw new MusterError('package_not_found', '/install/SHA256SUMS lists the available files.');
    throw new MusterError(
      'package_not_found',
      'This orchestrator has no packages: it was not installed from a package, and its clone was not built (npm run build).',
    );
  });

  async function answer(file: InstallFile, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const etag = `"${file.sha256}"`;
    reply.headers({
      'content-type': file.type,
      etag,
      'accept-ranges': 'bytes',
      // Package names contain their versions; an upgrade may change the content of other files.
      'cache-control': file.path.endsWith('.deb') ? 'public, max-age=86400' : 'no-cache',
    });
    if (names(request.headers['if-none-match'], etag)) return reply.code(304).send();
    const range = rangeOf(request.headers, etag, file.size);
    const { start, end } = range ?? { start: 0, end: file.size - 1 };
    const length = end - start + 1;
    if (range !== null) reply.code(206).header('content-range', `bytes ${start}-${end}/${file.size}`);
    reply.header('content-length', String(length));
    // The framework overwrites the length unless the body is a stream.
    if (request.method === 'HEAD') return reply.send(Readable.from([]));

    const leave = length <= smallBytes ? () => {} : slots.take(networkOf(request.ip));
    try {
      const handle = await openInstallFile(file);
      if (handle === null)
        throw new MusterError('package_not_found', 'The package is being replaced: retry in a minute.');
      const stream = handle.createReadStream({ start, end, highWaterMark: Math.min(pieceBytes, Math.max(length, 1)) });
      const cancelTimer = cutOffWhenSlow(reply, clock);
      stream.once('close', () => {
        cancelTimer();
        leave();
      });
      return reply.send(stream);
    } catch (error) {
      leave();
      for (const name of ['etag', 'accept-ranges', 'content-range', 'content-length', 'cache-control'])
        reply.removeHeader(name);
      throw error;
    }
  }
}

class TransferSlots {
  readonly #ofAddress = new Map<string, number>();
  #taken = 0;

  /**
   * Acquires a slot.
   * @returns a function that releases the slot; further calls have no effect
   * @throws RefusedRequest if no slot is free
   */
  take(address: string): () => void {
    const own = this.#ofAddress.get(address) ?? 0;
    if (this.#taken >= maxTransfers || own >= maxPerAddress)
      throw new RefusedRequest('rate_limited', 'Too many machines are downloading packages.', { 'retry-after': '5' });
    this.#taken++;
    this.#ofAddress.set(address, own + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken--;
      const left = (this.#ofAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#ofAddress.delete(address);
      else this.#ofAddress.set(address, left);
    };
  }
}

function cutOffWhenSlow({ raw }: FastifyReply, clock: Clock): () => void {
  const { socket } = raw;
  let before = socket?.bytesWritten ?? 0;
  let cancelTimer = clock.after(checkMs, check);
  function check(): void {
    // `bytesWritten` includes buffered bytes.
    const sent = (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0);
    if (sent - before < minBytes) {
      raw.destroy();
      return;
    }
    before = sent;
    cancelTimer = clock.after(checkMs, check);
  }
  return () => cancelTimer();
}

const names = (given: string | undefined, etag: string): boolean =>
  (given ?? '').split(',').some((one) => [etag, `W/${etag}`, '*'].includes(one.trim()));

/**
 * Returns the requested byte range; null for the whole file unless the request contains exactly one satisfiable range.
 */
function rangeOf(
  headers: FastifyRequest['headers'],
  etag: string,
  size: number,
): { start: number; end: number } | null {
  const condition = headers['if-range'];
  if (condition !== undefined && condition !== etag) return null;
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(String(headers.range ?? '')) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start <= end && start < size ? { start, end } : null;
}
