import { repositoryInside } from '../machine.ts';

const path = '/run/products.mjs';

/** Credentials that the services accept. */
export const productSecrets = { basic: 'example', token: 'example-token' };

// Services that answer as Grafana, RabbitMQ, Elasticsearch, Consul, and Keycloak do to the requests of the module
// `idiom-apis` in docs/coming-from.md, with objects in memory. Each object has the path that returns it.
const program = `import { createServer } from 'node:http';
const objects = new Map([['/admin/realms/shop/clients/7c1d5f6e-2a3b-4c5d-8e9f-0a1b2c3d4e5f', { clientId: 'shop', enabled: false, redirectUris: [] }]]);
const basic = 'Basic ' + Buffer.from('admin:${productSecrets.basic}').toString('base64');
const hidden = (...names) => (object) => Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)));
const products = {
  3000: { authorization: basic, shown: hidden('secureJsonData'), creates: ['/api/datasources', ({ uid }) => '/api/datasources/uid/' + uid] },
  15672: { authorization: basic, shown: hidden('password'), puts: true },
  9200: { shown: (object, path) => ({ [path.split('/').at(-1)]: { version: 1, ...object } }), puts: true },
  8500: { isText: true, shown: (text) => text, puts: true },
  8080: { authorization: 'Bearer ${productSecrets.token}', shown: (object) => object },
};
const answer = ({ authorization, shown, creates, puts, isText }, { method, url, headers }, body) => {
  const path = new URL(url, 'http://product').pathname;
  if (path === '/state') return [200, Object.fromEntries(objects)];
  if (authorization !== undefined && headers.authorization !== authorization) return [401, {}];
  const sent = body === '' || isText ? body : JSON.parse(body);
  if (method === 'POST' && path === creates?.[0]) {
    objects.set(creates[1](sent), sent);
    return [200, {}];
  }
  const isThere = objects.has(path);
  if (!isThere && !(method === 'PUT' && puts)) return [404, isText ? '' : {}];
  if (method === 'PUT') objects.set(path, sent);
  if (method === 'DELETE') objects.delete(path);
  return method === 'GET' ? [200, shown(objects.get(path), path)] : [isThere ? 204 : 201, ''];
};
for (const [port, product] of Object.entries(products))
  createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const [status, content] = answer(product, request, body);
    response.writeHead(status).end(status === 204 ? undefined : typeof content === 'string' ? content : JSON.stringify(content));
  }).listen(Number(port), '127.0.0.1');
`;

/** Shell text that prints the objects of all services. */
export const productsState = `bash -euc 'exec 3<> /dev/tcp/127.0.0.1/8500
printf "GET /state HTTP/1.0\\r\\n\\r\\n" >&3
sed "1,/^\\r$/d" <&3'`;

/** Shell text that starts the services and waits for them. */
export const productsUp = `cat > ${path} <<'END'
${program}END
systemd-run --quiet --unit=products --service-type=exec ${repositoryInside}/node_modules/.bin/node ${path}
for port in 3000 15672 9200 8500 8080; do
  until bash -c ": > /dev/tcp/127.0.0.1/$port" 2> /dev/null; do sleep 0.2; done
done
`;
