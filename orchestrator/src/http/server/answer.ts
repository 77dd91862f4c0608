import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { mediaOf, type Route } from '@muster/protocol/http';
import type { FastifyReply } from 'fastify';
import { compressJson, compressStream, isCompressed } from './compression.ts';
import { Chunked, JsonBody, JsonPieces, Paged, Reply, Stream } from './handlers.ts';
import { nextLink } from './page.ts';

/** Properties of a route's responses, computed once. */
export interface AnswerForm {
  readonly route: Route;
  /** Status for handlers that return only a body: the lowest status that the route declares. */
  readonly defaultStatus: number;
  /**
   * Whether to validate every response against its schema. Enabled in tests only, because validation costs more than
   * all other processing of a response.
   */
  readonly validate: boolean;
}

const json = 'application/json';

/**
 * Sends a handler's result.
 * @param applied whether the client requested `respond-async`, which a 202 response confirms
 * @param broken called for an error that occurs after the first bytes were sent; the client is then disconnected
 */
export function sendAnswer(
  form: AnswerForm,
  given: unknown,
  reply: FastifyReply,
  applied: boolean,
  broken: (error: unknown) => void,
): FastifyReply | Promise<FastifyReply> {
  let status = form.defaultStatus;
  let body = given;
  if (given instanceof Reply) {
    status = given.status;
    body = given.body;
    reply.headers(given.headers);
  }
  if (body instanceof Paged) {
    if (form.validate && !form.route.paged)
      throw new Error(`${form.route.id} returned a page, but the route is not paged`);
    if (body.next !== null) reply.header('link', nextLink(reply.request.url, body.next));
    body = body.items;
  }
  reply.code(status);
  if (applied && status === 202) reply.header('preference-applied', 'respond-async');
  if (body instanceof Stream) return sendStream(form, status, body, reply, broken);
  if (body instanceof Chunked) return sendPieces(reply, arrayPieces(form, status, body), broken);
  if (body instanceof JsonPieces) return sendPieces(reply, validatedPieces(form, status, body), broken);
  if (form.validate) requireSchema(form.route, status, body);
  if (body === undefined) return reply.send();
  return sendJson(reply, jsonOf(body));
}

/** JSON, either as a string or as UTF-8 bytes. */
type Json = string | Buffer;

function sendJson(reply: FastifyReply, body: Json): FastifyReply | Promise<FastifyReply> {
  reply.header('content-type', json);
  if (isCompressed(reply, body.length)) return compressJson(body).then((bytes) => reply.send(bytes));
  // Writes a short body together with the headers, which is only possible if the body is a string.
  return reply.send(body.length > maxJoinedBytes ? body : String(body));
}

/**
 * Maximum length of a body that is converted to a string so that it can be written with the headers. Converting a
 * longer body costs more than it saves.
 */
const maxJoinedBytes = 8 * 1024;

const jsonOf = (body: unknown): Json => (body instanceof JsonBody ? body.json : JSON.stringify(body));

function requireSchema(route: Route, status: number, body: unknown): void {
  const schema = route.answers[status];
  if (route.media?.[status] !== undefined)
    throw new Error(`${route.id} returned ${status} without a stream, which the route requires`);
  if (schema === undefined) throw new Error(`${route.id} returned ${status}, which the route does not declare`);
  if (schema === null) {
    if (body !== undefined) throw new Error(`${route.id} returned ${status} with a body, which must be empty`);
    return;
  }
  // Conversion to JSON omits undefined fields.
  const read = schema.safeParse(body === undefined ? undefined : JSON.parse(String(jsonOf(body))));
  if (!read.success)
    throw new Error(`${route.id} returned a body that does not match the schema: ${read.error.message}`);
}

/** Yields the JSON text of a long array in chunks. */
async function* arrayPieces(form: AnswerForm, status: number, { chunks }: Chunked<unknown>): AsyncGenerator<Json> {
  let before = '[';
  for await (const chunk of chunks) {
    if (form.validate) requireSchema(form.route, status, chunk);
    const array = jsonOf(chunk);
    if (array.length <= 2) continue;
    yield typeof array === 'string'
      ? before + array.slice(1, -1)
      : Buffer.concat([Buffer.from(before), array.subarray(1, -1)]);
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

/** Yields the chunks of a body. If validation is enabled, reads and validates the whole body before the first chunk. */
async function* validatedPieces(
  form: AnswerForm,
  status: number,
  { pieces }: JsonPieces<unknown>,
): AsyncGenerator<string> {
  if (!form.validate) return yield* pieces;
  let whole = '';
  for await (const piece of pieces) whole += piece;
  requireSchema(form.route, status, new JsonBody(whole));
  yield whole;
}

/** Maximum length of a body that is sent in a single chunk, in characters. */
const maxSmallBody = 64 * 1024;

/**
 * Sends a long body in chunks. Collects the first chunks before sending, so that early errors produce a normal error
 * response, and short bodies are sent in a single chunk.
 */
async function sendPieces(
  reply: FastifyReply,
  source: AsyncGenerator<Json>,
  broken: (error: unknown) => void,
): Promise<FastifyReply> {
  const start: Json[] = [];
  let length = 0;
  while (length <= maxSmallBody) {
    const step = await source.next();
    if (step.done) return sendJson(reply, start.join(''));
    start.push(step.value);
    length += step.value.length;
  }
  reply.header('content-type', json);

  async function* pieces(): AsyncGenerator<Json> {
    let ended = false;
    try {
      yield* start;
      for (let step = await source.next(); !step.done; step = await source.next()) {
        yield step.value;
        await nextTurn();
      }
      ended = true;
    } catch (error) {
      ended = true;
      broken(error);
      throw error;
    } finally {
      // The client has disconnected.
      if (!ended) await source.return(undefined);
    }
  }
  const whole = Readable.from(pieces(), { objectMode: false });
  return reply.send(isCompressed(reply, length) ? compressStream(whole) : whole);
}

/**
 * Sends a response that is not JSON. Waits for the first chunk before sending, so that early errors produce a normal
 * error response.
 */
async function sendStream(
  form: AnswerForm,
  status: number,
  stream: Stream,
  reply: FastifyReply,
  broken: (error: unknown) => void,
): Promise<FastifyReply> {
  const media = mediaOf(form.route, status);
  const type = stream.type ?? media[0];
  if (type === undefined || form.route.media?.[status] === undefined || !media.includes(type))
    throw new Error(`${form.route.id} returned ${status} as ${type}, which the route does not declare`);
  const source = stream.source[Symbol.asyncIterator]();
  if (reply.request.method === 'HEAD') {
    await source.return?.();
    // Without a stream, the framework would send a content length of 0, which would differ from the response to GET.
    return reply.header('content-type', type).send(Readable.from([]));
  }
  const first = await source.next();
  // `x-accel-buffering` prevents buffering by proxies.
  reply.header('content-type', type).header('x-accel-buffering', 'no');
  const whole = readableOf(source, first, stream.until, reply, broken);
  // A long-lived stream is not compressed, so that each chunk arrives immediately.
  const length = stream.until !== undefined || first.done ? 0 : first.value.length;
  return reply.send(isCompressed(reply, length) ? compressStream(whole) : whole);
}

function readableOf(
  source: AsyncIterator<string | Uint8Array>,
  first: IteratorResult<string | Uint8Array>,
  until: AbortSignal | undefined,
  reply: FastifyReply,
  broken: (error: unknown) => void,
): Readable {
  let step: IteratorResult<string | Uint8Array> | null = first;
  let ended = false;
  const release = () => {
    ended = true;
    until?.removeEventListener('abort', end);
    // If the source is computing a chunk, `return` takes effect only afterward.
    void Promise.resolve(source.return?.()).catch(() => {});
  };
  const pull = async (): Promise<void> => {
    try {
      // Pushing an empty chunk would end the stream.
      for (;;) {
        const { done, value } = step ?? (await source.next());
        step = null;
        if (ended) return;
        if (done) {
          ended = true;
          until?.removeEventListener('abort', end);
          readable.push(null);
          return;
        }
        if (value.length > 0) {
          readable.push(value);
          return;
        }
      }
    } catch (error) {
      if (ended) return;
      broken(error);
      readable.destroy(error as Error);
    }
  };
  const readable = new Readable({
    read: () => void pull(),
    destroy(error, done) {
      if (!ended) release();
      done(error);
    },
  });
  const end = () => {
    if (ended) return;
    release();
    // A client that has read all chunks receives the complete response. All other clients are disconnected.
    if (readable.readableLength > 0 || reply.raw.writableNeedDrain) readable.destroy();
    else readable.push(null);
  };
  until?.addEventListener('abort', end);
  if (until?.aborted) end();
  return readable;
}
