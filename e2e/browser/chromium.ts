import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as ask, createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type Browser, chromium } from 'playwright-core';
import { browserProgram, missing } from '../requirements.ts';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts Debian's Chromium, without background requests. */
export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath: browserProgram, args: flags });

const proxyPort = 3128;
/**
 * Forwards a port in the browser's network namespace to a Unix socket, which is reachable from any network namespace.
 */
const splice = `
  const { connect, createServer } = require('node:net');
  createServer((near) => {
    const far = connect(process.argv[1]);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on('error', () => { near.destroy(); far.destroy(); });
  }).listen(${proxyPort}, '127.0.0.1');
`;

/**
 * Starts Chromium in a network namespace that can reach only this machine's loopback interface. Test hosts add and
 * remove interfaces on this machine, and Chromium aborts its requests whenever an interface in its namespace changes.
 */
export async function openBrowserApart(): Promise<Browser> {
  if (missing('linux', 'root', 'namespaces') !== null) return openBrowser();
  const folder = mkdtempSync(join(tmpdir(), 'muster-browser-'));
  const socket = join(folder, 'proxy');
  const program = join(folder, 'chromium');
  writeFileSync(join(folder, 'splice.cjs'), splice);
  writeFileSync(
    program,
    `#!/bin/sh
exec unshare --net sh -c 'ip link set lo up
setpriv --pdeathsig KILL -- "${process.execPath}" -e "$(cat "${folder}/splice.cjs")" "${socket}" 3<&- 4>&- &
exec "${browserProgram}" "$@"' sh "$@"
`,
  );
  chmodSync(program, 0o700);
  const proxyServer = await startProxy(socket);
  const proxy = { server: `http://127.0.0.1:${proxyPort}`, bypass: '<-loopback>' };
  const browser = await chromium.launch({ executablePath: program, args: flags, proxy });
  browser.on('disconnected', () => {
    proxyServer.closeAllConnections();
    proxyServer.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return browser;
}

/** Starts a proxy that forwards requests only to 127.0.0.1. */
async function startProxy(socket: string): Promise<Server> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://nowhere.invalid');
    if (url.hostname !== '127.0.0.1') return void response.writeHead(403).end();
    const far = ask(url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    far.on('error', () => response.destroy());
    request.pipe(far);
  });
  server.on('connect', (request, near: Duplex, head: Buffer) => {
    const [host, port] = (request.url ?? '').split(':');
    if (host !== '127.0.0.1') return void near.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const far = connect(Number(port), host, () => {
      near.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      far.write(head);
      near.pipe(far).pipe(near);
    });
    for (const each of [near, far])
      each.on('error', () => {
        near.destroy();
        far.destroy();
      });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return server;
}
