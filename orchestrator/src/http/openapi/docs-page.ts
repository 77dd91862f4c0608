import { hash, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import fastify, { type FastifyInstance } from 'fastify';

/** Serves the page that shows `/openapi.json`, and its files. The page's policy forbids requests to other hosts. */

const page = '/docs';
/** Adds the nonce that the policy requires to style elements, because some elements are created without a nonce. */
const before = `const { content } = document.querySelector('meta[property=csp-nonce]');
const create = document.createElement.bind(document);
document.createElement = (name, options) => {
  const element = create(name, options);
  if (String(name).toLowerCase() === 'style') element.nonce = content;
  return element;
};
`;

/**
 * Starts the API reference. Served as a file, because the policy forbids inline scripts. Disables fonts, proxies,
 * clients, and third-party analytics.
 */
const start = `Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  persistAuth: false,
  documentDownloadType: 'direct',
});
`;

const html = (nonce: string, script: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="csp-nonce" content="${nonce}">
<link rel="icon" href="data:,">
<title>Muster API</title>
</head>
<body>
<noscript>This page needs JavaScript; <a href="/openapi.json">/openapi.json</a> does not.</noscript>
<div id="reference"></div>
<script src="${page}/before.js"></script>
<script src="${script}"></script>
<script src="${page}/start.js"></script>
</body>
</html>
`;

const policyWith = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src-elem 'self' 'nonce-${nonce}'`,
    // The API reference sets some sizes and colors in style attributes.
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

interface Script {
  /** Hash of the script. Part of the script's URL, so that browsers can cache the script until an upgrade. */
  readonly hash: string;
  readonly plain: Buffer;
  readonly zipped: Buffer;
}

/** Extracts the reference script from its package, where a plugin serves it. Called on the first request. */
async function loadScript(): Promise<Script> {
  const { default: reference } = await import('@scalar/fastify-api-reference');
  const holder = fastify();
  try {
    await holder.register(reference, { routePrefix: page, configuration: { url: '/openapi.json' } });
    const { statusCode, rawPayload } = await holder.inject(`${page}/js/scalar.js`);
    if (statusCode !== 200) throw new Error(`the API reference cannot be read from its package: ${statusCode}`);
    return {
      hash: hash('sha256', rawPayload).slice(0, 16),
      plain: rawPayload,
      zipped: await promisify(gzip)(rawPayload),
    };
  } finally {
    await holder.close();
  }
}

/** Registers the page and its files. They are public, because they contain no data. */
export function registerDocsPage(app: FastifyInstance): void {
  let loading: Promise<Script> | null = null;
  const script = () => {
    loading ??= loadScript().catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  };
  app.get(page, async (_request, reply) => {
    const { hash } = await script();
    const nonce = randomBytes(16).toString('base64');
    return reply
      .headers({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': policyWith(nonce),
        'referrer-policy': 'no-referrer',
      })
      .send(html(nonce, `${page}/reference.js?v=${hash}`));
  });
  for (const [name, text] of Object.entries({ before, start }))
    app.get(`${page}/${name}.js`, (_request, reply) =>
      reply.header('content-type', 'text/javascript; charset=utf-8').send(text),
    );
  app.get(`${page}/reference.js`, async (request, reply) => {
    const { hash, plain, zipped } = await script();
    reply.headers({ 'content-type': 'text/javascript; charset=utf-8', vary: 'accept-encoding' });
    // The current script must not be cached under an outdated hash.
    if (request.url.endsWith(`?v=${hash}`)) reply.header('cache-control', 'public, max-age=31536000, immutable');
    if (!/\bgzip\b/.test(String(request.headers['accept-encoding']))) return reply.send(plain);
    return reply.header('content-encoding', 'gzip').send(zipped);
  });
}
