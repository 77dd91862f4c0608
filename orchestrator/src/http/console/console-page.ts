import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { chooseEncoding } from '../server/content-encoding.ts';
import type { ConsoleFile, ConsoleFiles } from './console-files.ts';

/**
 * The console: one page for every address that it has something to show at, and the files that the page asks for. Open
 * to anyone: what it shows it fetches over the API, with the session of who signed in.
 */

/** First segments of addresses that are no pages of the console, also where nothing is there: a file of a former release. */
const others = ['api', 'docs', 'openapi.json', 'schemas', 'install', 'healthz', 'readyz', 'metrics', 'assets'];

/** What browsers give to pages that ask for nothing; the console asks for the clipboard and the whole screen alone. */
const permissions = [
  ...['accelerometer', 'autoplay', 'camera', 'display-capture', 'encrypted-media', 'geolocation'],
  ...['gyroscope', 'hid', 'idle-detection', 'magnetometer', 'microphone', 'midi', 'payment', 'picture-in-picture'],
  ...['publickey-credentials-create', 'publickey-credentials-get', 'screen-wake-lock', 'serial', 'usb'],
  ...['xr-spatial-tracking'],
];

const common = {
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
const pageHeaders = {
  ...common,
  'content-type': 'text/html; charset=utf-8',
  // Each has a nonce of its own, which nothing may keep.
  'cache-control': 'no-store',
  'permissions-policy': permissions.map((feature) => `${feature}=()`).join(', '),
  'x-frame-options': 'DENY',
};

/** What the page may do: nothing but ask where it came from, and show what that answers. */
const policyWith = (nonce: string | null): string =>
  [
    "default-src 'none'",
    ...(nonce === null
      ? []
      : [
          "script-src 'self'",
          // Some libraries make style elements; those get the nonce. Attributes of elements may hold no style.
          `style-src 'self' 'nonce-${nonce}'`,
          // WebSockets to where it came from too: `'self'` has them.
          "connect-src 'self'",
          "img-src 'self' data:",
          "font-src 'self'",
          // Text becomes neither elements nor a program: what would make it so throws.
          "require-trusted-types-for 'script'",
          "trusted-types 'none'",
        ]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** For a clone in which nobody has built it. */
const howToBuild = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Muster: the console is not built</title>
<h1>The console is not built</h1>
<p>This orchestrator runs from a clone. In its folder, <code>npm start</code> builds the console and starts everything;
<code>npm run console:build</code> only builds it, for the next start.</p>
<p>The API is there all the same: <a href="/docs">/docs</a>.</p>
</html>
`;

/** Answers what no route has taken; false: this does neither. */
export type AnswerUnknown = (request: FastifyRequest, reply: FastifyReply) => boolean;

/**
 * Registers the page, its files and, where it was not built, how to do that.
 * @param files null: not built
 */
export function registerConsolePage(app: FastifyInstance, files: ConsoleFiles | null): AnswerUnknown {
  if (files === null) {
    app.get('/', (_request, reply) =>
      reply
        .code(404)
        .headers({ ...pageHeaders, 'content-security-policy': policyWith(null) })
        .send(howToBuild),
    );
    return () => false;
  }
  const sendPage = (reply: FastifyReply): FastifyReply => {
    const nonce = randomBytes(16).toString('base64');
    const [before, after] = files.page;
    return reply
      .headers({ ...pageHeaders, 'content-security-policy': policyWith(nonce) })
      .send(`${before}${nonce}${after}`);
  };
  for (const path of ['/', ...files.segments.flatMap((segment) => [`/${segment}`, `/${segment}/*`])])
    app.get(path, (_request, reply) => sendPage(reply));
  for (const [name, file] of files.files) app.get(`/${name}`, (request, reply) => sendFile(name, file, request, reply));
  return (request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    const isMeant =
      (request.method === 'GET' || request.method === 'HEAD') &&
      /\btext\/html\b/i.test(request.headers.accept ?? '') &&
      !others.includes(path.split('/', 2)[1] as string);
    // The console says itself that there is nothing.
    if (isMeant) sendPage(reply.code(404));
    return isMeant;
  };
}

async function sendFile(
  name: string,
  file: ConsoleFile,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const etag = `W/"${file.sha256.slice(0, 32)}"`;
  reply.headers({
    ...common,
    'content-type': file.type,
    etag,
    // The name of an asset has the hash of what is in it.
    'cache-control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
    ...(file.encodings.length > 0 ? { vary: 'accept-encoding' } : {}),
  });
  if ((headers['if-none-match'] ?? '').split(',').some((one) => one.trim() === etag)) return reply.code(304).send();
  const encoding = chooseEncoding(headers['accept-encoding']?.toString(), file.encodings);
  if (encoding !== null) reply.header('content-encoding', encoding);
  const content = await file.content(encoding);
  if (content.length <= pieceBytes) return reply.send(content);
  reply.header('content-length', content.length);
  return reply.send(Readable.from(piecesOf(content)));
}

/** Handed on as it is read: of a whole one TLS makes a copy for each of thousands of strangers who need not read it. */
const pieceBytes = 64 * 1024;

function* piecesOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}
