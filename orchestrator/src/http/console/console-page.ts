import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { chooseEncoding } from '../server/content-encoding.ts';
import type { ConsoleFile, ConsoleFiles } from './console-files.ts';

/**
 * Serves the console: one page for all console paths, and the console's files. Both are public, because the page reads
 * data only through the API, with the operator's sign-in session.
 */

/** First path segments that never belong to a console page, even if no route exists. */
const others = ['api', 'docs', 'openapi.json', 'schemas', 'install', 'healthz', 'readyz', 'metrics', 'assets'];

/** Browser features that are allowed by default but that the console does not need. */
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
  // The nonce is valid for one response, so the page must not be cached.
  'cache-control': 'no-store',
  'permissions-policy': permissions.map((feature) => `${feature}=()`).join(', '),
  'x-frame-options': 'DENY',
};

/** Returns the Content-Security-Policy, which allows requests only to the page's own origin. */
const policyWith = (nonce: string | null): string =>
  [
    "default-src 'none'",
    ...(nonce === null
      ? []
      : [
          "script-src 'self'",
          // Libraries create style elements with the nonce. Style attributes are not allowed.
          `style-src 'self' 'nonce-${nonce}'`,
          // `'self'` includes WebSockets to the same origin.
          "connect-src 'self'",
          "img-src 'self' data:",
          "font-src 'self'",
          // Disallows strings that the browser would parse as HTML or script, as in `innerHTML`.
          "require-trusted-types-for 'script'",
          "trusted-types 'none'",
        ]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** The page for a clone without a built console. */
const howToBuild = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Muster: the console is not built</title>
<h1>The console is not built</h1>
<p>This orchestrator runs from a clone. In its folder, <code>npm start</code> builds the console and starts everything;
<code>npm run console:build</code> only builds it, for the next start.</p>
<p>The API still works: <a href="/docs">/docs</a>.</p>
</html>
`;

/**
 * Responds to a request for a path without a route.
 * @returns false if the request is not for a console page
 */
export type AnswerUnknown = (request: FastifyRequest, reply: FastifyReply) => boolean;

/** Registers the page and its files. @param files null to serve build instructions instead */
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
    const isPage =
      (request.method === 'GET' || request.method === 'HEAD') &&
      /\btext\/html\b/i.test(request.headers.accept ?? '') &&
      !others.includes(path.split('/', 2)[1] as string);
    // The console itself shows that the page does not exist.
    if (isPage) sendPage(reply.code(404));
    return isPage;
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
    // Asset names contain a hash of their content.
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

/** Chunk size in bytes. TLS copies the data for each client, which may never read it, so files are sent in chunks. */
const pieceBytes = 64 * 1024;

function* piecesOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}
