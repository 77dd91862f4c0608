import { repositoryInside } from '../machine.ts';
import type { Subject } from '../subjects/subject.ts';

/** Port of the service, which is also in the example of the kind. */
const port = 8640;
const path = '/run/http-api.mjs';

// A service with a REST API that stores objects in memory. Users are created in their collection, need credentials, and
// never show their password. The values below /kv are text. The argument is the startup delay in milliseconds.
const program = `import { createServer } from 'node:http';
const users = new Map(), texts = new Map();
const accepted = 'Basic ' + Buffer.from('admin:example').toString('base64');
const merge = (old, next) => {
  if (typeof next !== 'object' || next === null || Array.isArray(next)) return next;
  const all = { ...(typeof old === 'object' ? old : {}) };
  for (const [key, value] of Object.entries(next)) if (value === null) delete all[key]; else all[key] = merge(all[key], value);
  return all;
};
const answer = ({ method, url, headers }, body) => {
  const [, kind, name] = url.split('/');
  if (kind === 'state') return [200, { users: Object.fromEntries(users), texts: Object.fromEntries(texts) }];
  if (kind === 'kv') {
    if (method === 'PUT') texts.set(name, body);
    if (method === 'DELETE') texts.delete(name);
    return texts.has(name) ? [200, texts.get(name)] : [404, ''];
  }
  if (kind !== 'users') return [404, {}];
  if (headers.authorization !== accepted) return [401, { error: 'who are you?' }];
  const sent = body === '' ? {} : JSON.parse(body);
  if (method === 'POST' && name === undefined) {
    if (typeof sent.name !== 'string' || users.has(sent.name)) return [409, { error: 'no name, or it exists' }];
    users.set(sent.name, sent);
    return [201, {}];
  }
  const user = users.get(name);
  if (user === undefined) return [404, { error: 'no such user' }];
  if (method === 'PUT') users.set(name, { ...sent, name });
  if (method === 'PATCH') users.set(name, merge(user, sent));
  if (method === 'DELETE') users.delete(name);
  const { password, ...shown } = users.get(name) ?? {};
  return [method === 'DELETE' ? 204 : 200, { users: [shown], total: 1 }];
};
const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const [status, content] = answer(request, body);
  response.writeHead(status).end(status === 204 ? undefined : typeof content === 'string' ? content : JSON.stringify(content));
});
setTimeout(() => server.listen(${port}, '127.0.0.1'), Number(process.argv[2]));
`;

const node = `${repositoryInside}/node_modules/.bin/node`;
/** The service as a command. */
export const httpApi = { path, program, command: `${node} ${path}` };

/** Sends one request, with the credentials. Prints the response to a GET request. */
const send = (method: string, of: string, body: object | string = ''): string =>
  `bash -euc '
exec 3<> /dev/tcp/127.0.0.1/${port}
printf "%s %s HTTP/1.0\\r\\nAuthorization: Basic ${btoa('admin:example')}\\r\\nContent-Length: %d\\r\\n\\r\\n%s" "$1" "$2" "\${#3}" "$3" >&3
answer=$(cat <&3)
case $answer in "HTTP/1.1 2"*) ;; *) echo "$answer" >&2; exit 1 ;; esac
if [ "$1" = GET ]; then sed "1,/^\\r$/d" <<< "$answer"; fi
' - ${method} ${of} '${typeof body === 'string' ? body : JSON.stringify(body)}'`;

/** Shell text that starts the service and waits for it. */
export const httpApiUp = `cat > ${path} <<'END'
${program}END
systemd-run --quiet --unit=http-api --service-type=exec ${httpApi.command} 0
until ${send('GET', '/state')} > /dev/null 2>&1; do sleep 0.2; done
`;

export const httpApiState = send('GET', '/state');

const user = (fields: object) => ({
  'http-object': {
    url: `http://127.0.0.1:${port}/users/ada`,
    read_at: '/users/0',
    create_method: 'POST' as const,
    create_url: `http://127.0.0.1:${port}/users`,
    username: 'admin',
    password: 'example',
    ...fields,
  },
});
const value = (fields: object) => ({ 'http-object': { url: `http://127.0.0.1:${port}/kv/motd`, ...fields } });
const state = httpApiState;
const ada = { name: 'ada', tags: ['admin'], limits: { queues: 5, connections: 7 } };

export const httpObjectSubjects: readonly Subject[] = [
  {
    name: 'http-object, created in a collection',
    prepare: httpApiUp,
    desired: user({ body: { name: 'ada', tags: ['monitoring'], limits: { queues: 1 } } }),
    changed: user({ body: { name: 'ada', tags: [], limits: { queues: 2 } } }),
    tamper: send('PUT', '/users/ada', { tags: ['monitoring', 'admin'], limits: { queues: 1 } }),
    moved: ['body'],
    state,
  },
  {
    name: 'http-object, adopted and patched',
    prepare: `${httpApiUp}${send('POST', '/users', ada)}`,
    desired: user({ method: 'PATCH', body: { limits: { queues: 9, channels: 3 } } }),
    changed: user({ method: 'PATCH', body: { tags: ['monitoring'], limits: { queues: 8 } } }),
    tamper: send('PATCH', '/users/ada', { limits: { channels: null, connections: 7 } }),
    moved: ['body'],
    state,
  },
  {
    name: 'http-object, absent',
    prepare: `${httpApiUp}${send('POST', '/users', ada)}`,
    desired: user({ ensure: 'absent' }),
    changed: user({ body: { name: 'ada', tags: ['monitoring'] } }),
    tamper: send('POST', '/users', { name: 'ada' }),
    moved: ['ensure'],
    state,
  },
  {
    name: 'http-object, adopted text',
    prepare: `${httpApiUp}${send('PUT', '/kv/motd', 'hello')}`,
    desired: value({ body: 'a "b"\n' }),
    changed: value({ body: '{"a": 1}' }),
    // Changes the object instead of deleting it, because a removal does not recreate a deleted object.
    tamper: send('PUT', '/kv/motd', 'other'),
    moved: ['body'],
    state,
  },
];
