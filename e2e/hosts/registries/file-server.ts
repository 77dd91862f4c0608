// Serves the files of a directory on this machine. Cuts the connection in the middle of the first response to each path
// below /cut/. Appends the path of each request to a log. Usage: node file-server.ts PORT DIRECTORY LOG
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { basename, join } from 'node:path';

const [port, directory = '', log = ''] = process.argv.slice(2);
const cut = new Set<string>();

createServer((request, response) => {
  const path = request.url ?? '';
  const { range } = request.headers;
  appendFileSync(log, range === undefined ? `${path}\n` : `${path} ${range}\n`);
  const content = readOrNull(join(directory, basename(path)));
  if (content === null) {
    response.writeHead(404).end();
    return;
  }
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
  const part = content.subarray(from);
  const headers = { 'content-length': part.length };
  if (from === 0) response.writeHead(200, headers);
  else
    response.writeHead(206, { ...headers, 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` });
  if (!path.startsWith('/cut/') || cut.has(path)) response.end(part);
  else {
    cut.add(path);
    cutOff(response, part);
  }
}).listen(Number(port), '127.0.0.1');

function readOrNull(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

function cutOff(response: ServerResponse, content: Buffer): void {
  response.write(content.subarray(0, content.length / 2), () => response.destroy());
}
