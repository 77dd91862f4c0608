import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { HttpFailure, type HttpMethod, type HttpReply, httpCall } from '../../host/network/http-get.ts';
import { fileStatus } from '../../host/read-system.ts';
import type { Json, Machine } from '../provider/provider.ts';
import { type Found, parseAnswer, pointerOf, valueAt } from './subset.ts';

export type Declared = ResolvedResource<'http-object'>;

/** Maximum size of a response, in bytes. */
const maxAnswer = 1024 * 1024;
/** Seconds that one request may take by default. */
const defaultTimeout = 30;

/** Why the object could not be read. */
export interface NoAnswer {
  message: string;
  /** Whether the server may still be starting. */
  mayBeStarting: boolean;
}

export type Read = { missing: NoAnswer } | { missing: null; object: Found };

/** Returns a URL for messages, without its query. */
const shownUrl = (text: string): string => {
  const url = URL.parse(text);
  return url === null ? 'the URL' : `${url.protocol}//${url.host}${url.pathname}`.slice(0, 300);
};

/**
 * Status codes of a GET response that mean that the server refuses access or is not ready yet. An earlier resource may
 * fix either.
 */
const refusals: Readonly<Record<number, string>> = {
  401: 'the server does not accept the credentials (401)',
  403: 'the server does not permit access (403)',
  502: 'the server answers 502',
  503: 'the server is not available (503)',
  504: 'the server answers 504',
};

/**
 * Reads the object.
 * @returns `object: undefined` if it does not exist
 * @throws HostFailure if the response does not come from an API that has such objects
 */
export async function readObject(resource: Declared, machine: Machine): Promise<Read> {
  const { body } = resource;
  const at = `GET ${shownUrl(body.url)}: `;
  let reply: HttpReply;
  try {
    reply = await exchange('GET', body.url, null, resource, machine);
  } catch (error) {
    if (error instanceof HttpFailure)
      return { missing: { message: `${at}${error.message}`, mayBeStarting: error.mayPass } };
    throw error instanceof HostFailure ? new HostFailure(`${at}${error.message}`) : error;
  }
  const { status } = reply;
  if (status === 404 || status === 410) return { missing: null, object: undefined };
  const refusal = refusals[status];
  if (refusal !== undefined) return { missing: { message: `${at}${refusal}`, mayBeStarting: status > 500 } };
  if (status !== 200) throw new HostFailure(`${at}${unexpected(reply, body.url)}`);
  try {
    return { missing: null, object: objectIn(reply, body) };
  } catch (error) {
    throw error instanceof HostFailure ? new HostFailure(`${at}${error.message}`) : error;
  }
}

function objectIn({ body: bytes, headers }: HttpReply, body: Declared['body']): Found {
  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding !== 'identity')
    throw new HostFailure('the server compressed the answer, although the request does not accept compression');
  const text = bytes.toString('utf8');
  if (typeof body.body === 'string' && body.read_at == null) return text;
  const answer = parsed(text, body);
  const found = body.read_at == null ? answer : valueAt(answer, pointerOf(body.read_at));
  return found === null ? undefined : found;
}

/** Parses a response. Returns text that is not JSON unchanged if the object is declared absent. */
function parsed(text: string, { ensure, read_at }: Declared['body']): Json {
  try {
    return parseAnswer(text);
  } catch (error) {
    if (ensure === 'absent' && read_at == null) return text;
    throw error;
  }
}

function unexpected({ status, headers }: HttpReply, from: string): string {
  const { location } = headers;
  if (status < 300 || status >= 400 || location === undefined) return `the server answers ${status}`;
  const to = URL.parse(location, from)?.href ?? '';
  return `the server redirects to ${shownUrl(to)}, and the agent does not follow redirects; declare that URL`;
}

/** In characters. */
const maxQuotedLength = 300;

/**
 * Changes the object.
 * @returns the failure if the server refuses the change; `words`: the beginning of the response, which may contain a
 *   secret
 * @throws HostFailure if there is no response
 */
export async function change(
  method: HttpMethod,
  url: string,
  payload: Json | null,
  resource: Declared,
  machine: Machine,
): Promise<{ failure: string; words?: string } | null> {
  const at = `${method} ${shownUrl(url)}: `;
  let reply: HttpReply;
  try {
    reply = await exchange(method, url, payload, resource, machine);
  } catch (error) {
    throw error instanceof HostFailure ? new HostFailure(`${at}${error.message}`) : error;
  }
  const { status } = reply;
  if (status >= 200 && status < 300) return null;
  if (method === 'DELETE' && (status === 404 || status === 410)) return null;
  const words = reply.body
    .toString('utf8')
    .slice(0, maxQuotedLength)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .toWellFormed();
  return { failure: `${at}${unexpected(reply, url)}`, ...(words === '' ? {} : { words: `: ${words}` }) };
}

/**
 * Sends one request.
 * @throws HttpFailure if there is no response
 * @throws HostFailure if the request cannot be sent
 * @throws the reason of `machine.stop` if the agent stops
 */
async function exchange(
  method: HttpMethod,
  url: string,
  payload: Json | null,
  { body }: Declared,
  { clock, stop }: Machine,
): Promise<HttpReply> {
  const { ca_file: authorities, timeout } = body;
  if (url.startsWith('https:') && authorities != null && fileStatus(authorities)?.isFile !== true)
    throw new HttpFailure(`the file ${authorities} in \`ca_file\` does not exist`, false);
  const seconds = timeout ?? defaultTimeout;
  const limit = new AbortController();
  const cancel = clock.after(seconds * 1000, () => limit.abort());
  try {
    return await httpCall({
      method,
      url,
      headers: headersOf(body, payload),
      ...(payload === null ? {} : { body: typeof payload === 'string' ? payload : JSON.stringify(payload) }),
      limit: maxAnswer,
      // The server is usually near the machine, and a proxy would see the credentials, so no proxy is used.
      environment: authorities == null ? {} : { SSL_CERT_FILE: authorities },
      signal: AbortSignal.any([limit.signal, stop]),
    });
  } catch (error) {
    stop.throwIfAborted();
    if (limit.signal.aborted) throw new HttpFailure(`the server did not answer within ${seconds} s`, true);
    if (error instanceof HttpFailure && error.message.includes('ECONNREFUSED'))
      throw new HttpFailure('the server does not accept connections (ECONNREFUSED)', true);
    if (error instanceof HostFailure) throw error;
    // The message of the error may contain a header.
    throw new HostFailure(`the request cannot be sent: ${(error as { code?: string }).code ?? 'unknown reason'}`);
  } finally {
    cancel();
  }
}

function headersOf({ headers, username, password, body }: Declared['body'], payload: Json | null) {
  const isText = typeof (payload ?? body) === 'string';
  const own: Record<string, string> = { accept: isText ? '*/*' : 'application/json' };
  if (payload !== null) own['content-type'] = isText ? 'text/plain; charset=utf-8' : 'application/json';
  if (username != null) own.authorization = `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
  for (const [name, value] of Object.entries(headers ?? {})) own[name.toLowerCase()] = value;
  return own;
}
