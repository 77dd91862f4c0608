import { Readable } from 'node:stream';
import { MusterError } from '@muster/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../../../lib/src/clock.ts';
import { networkOf } from '../../client-network.ts';
import { RefusedRequest } from '../server/problem.ts';
import { type InstallFile, type InstallFiles, openInstallFile } from './install-files.ts';

/**
 * The script, and the packages that it installs. Open to anyone: what is in them is no secret, and a machine that fetches
 * them has nothing to show yet. So that a thousand machines at once hold up nobody, so many are served at one time as
 * keep the network busy; the others are told to come again. Who is too slow gives up the place.
 */
interface TransferLimits {
  /** At one time. */
  readonly transfers: number;
  /** Of one address, or one IPv6 network. */
  readonly perAddress: number;
  /** So many bytes must have gone after each `lookMs`, or the transfer is cut off. */
  readonly leastBytes: number;
  readonly lookMs: number;
}

const defaultTransferLimits: TransferLimits = {
  transfers: 24,
  perAddress: 8,
  leastBytes: 256 * 1024,
  lookMs: 15_000,
};

/** Files up to this size take no place: they are sent at once. */
const smallBytes = 64 * 1024;
const pieceBytes = 256 * 1024;

export function registerInstall(
  app: FastifyInstance,
  files: InstallFiles,
  clock: Clock,
  limits: TransferLimits = defaultTransferLimits,
): void {
  const places = new Places(limits);
  for (const [name, file] of files) app.get(`/install/${name}`, (request, reply) => answer(file, request, reply));
  app.get('/install/*', () => {
    if (files.size > 0) throw new MusterError('package_not_found', 'See /install/SHA256SUMS for what there is.');
    throw new MusterError(
      'package_not_found',
      'This orchestrator has no packages: it does not run from one, and its clone was not built (npm run build).',
    );
  });

  async function answer(file: InstallFile, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const etag = `"${file.sha256}"`;
    reply.headers({
      'content-type': file.type,
      etag,
      'accept-ranges': 'bytes',
      // The name has the version; what is under the others changes with an upgrade.
      'cache-control': file.path.endsWith('.deb') ? 'public, max-age=86400' : 'no-cache',
    });
    if (names(request.headers['if-none-match'], etag)) return reply.code(304).send();
    const range = rangeOf(request.headers, etag, file.size);
    const { start, end } = range ?? { start: 0, end: file.size - 1 };
    const length = end - start + 1;
    if (range !== null) reply.code(206).header('content-range', `bytes ${start}-${end}/${file.size}`);
    reply.header('content-length', String(length));
    // A stream, though one of nothing: of anything else the framework reckons the length.
    if (request.method === 'HEAD') return reply.send(Readable.from([]));

    const leave = length <= smallBytes ? () => {} : places.take(networkOf(request.ip));
    try {
      const handle = await openInstallFile(file);
      if (handle === null)
        throw new MusterError('package_not_found', 'It is just being replaced: try again in a minute.');
      const stream = handle.createReadStream({ start, end, highWaterMark: Math.min(pieceBytes, Math.max(length, 1)) });
      const callOff = cutOffWhenSlow(reply, clock, limits);
      stream.once('close', () => {
        callOff();
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

/** Who is served at one time. */
class Places {
  readonly #limits: TransferLimits;
  readonly #ofAddress = new Map<string, number>();
  #taken = 0;

  constructor(limits: TransferLimits) {
    this.#limits = limits;
  }

  /**
   * @returns what gives the place back, once
   * @throws RefusedRequest when there is none
   */
  take(address: string): () => void {
    const own = this.#ofAddress.get(address) ?? 0;
    if (this.#taken >= this.#limits.transfers || own >= this.#limits.perAddress)
      throw new RefusedRequest('rate_limited', 'Many machines are fetching packages just now.', { 'retry-after': '5' });
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

function cutOffWhenSlow({ raw }: FastifyReply, clock: Clock, { leastBytes, lookMs }: TransferLimits): () => void {
  const { socket } = raw;
  let before = socket?.bytesWritten ?? 0;
  let callOff = clock.after(lookMs, look);
  function look(): void {
    // What the kernel has not taken is written as far as the socket knows.
    const gone = (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0);
    if (gone - before < leastBytes) {
      raw.destroy();
      return;
    }
    before = gone;
    callOff = clock.after(lookMs, look);
  }
  return () => callOff();
}

const names = (given: string | undefined, etag: string): boolean =>
  (given ?? '').split(',').some((one) => [etag, `W/${etag}`, '*'].includes(one.trim()));

/** One range of bytes that can be satisfied and is of this file; null: all of it. */
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
