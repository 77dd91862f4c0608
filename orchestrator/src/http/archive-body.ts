import type { IncomingMessage } from 'node:http';
import { MusterError } from '@muster/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Milliseconds without incoming data after which an upload is aborted. */
const idleMs = 60_000;
/** Maximum duration of an upload in milliseconds. */
const uploadMs = 30 * 60_000;

/** Sockets that carry uploads. They are exempt from the time limit for other requests. */
const uploading = new WeakSet<object>();

/** Reports whether the socket carries an archive upload, which has its own time limits. */
export const isUploading = (socket: object): boolean => uploading.has(socket);

/** The body of an archive upload, read at the handler's pace. */
class ArchiveBody {
  readonly bytes: AsyncIterable<Uint8Array>;
  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.bytes = bytes;
  }
}

/** Returns the bytes of an archive body; null for any other body. */
export const archiveIn = (body: unknown): AsyncIterable<Uint8Array> | null =>
  body instanceof ArchiveBody ? body.bytes : null;

/** Accepts gzip-compressed archives on the routes that declare them. */
export function acceptArchives(app: FastifyInstance): void {
  app.addContentTypeParser('application/gzip', (request: FastifyRequest, payload: IncomingMessage, done) => {
    const { archive } = request.routeOptions.config as { archive?: boolean };
    if (archive !== true) return done(new MusterError('unsupported_media_type'));
    done(null, new ArchiveBody(bounded(payload)));
  });
}

async function* bounded(payload: IncomingMessage): AsyncGenerator<Uint8Array> {
  const { socket } = payload;
  const late = setTimeout(() => payload.destroy(timedOut()), uploadMs);
  const onIdle = () => payload.destroy(timedOut());
  uploading.add(socket);
  socket.setTimeout(idleMs, onIdle);
  try {
    for await (const bytes of payload) yield bytes as Uint8Array;
  } finally {
    clearTimeout(late);
    uploading.delete(socket);
    socket.setTimeout(0, onIdle);
    socket.off('timeout', onIdle);
  }
}

const timedOut = () => new MusterError('malformed_request', 'The archive did not arrive in time.');
