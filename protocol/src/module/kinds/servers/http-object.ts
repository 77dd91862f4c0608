import { anyValue, choice, formatted, integer, list, map, text } from '../field.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';

/** The URL of an object. It identifies a resource, so it must not contain a password. */
const objectUrl: format.Check = (value) => {
  const fault = format.httpUrl(value);
  if (fault !== undefined) return fault.replace('https://example.org/app.tar.gz', 'http://127.0.0.1:8080/users/ada');
  const url = URL.parse(value);
  return url?.username === '' && url.password === ''
    ? undefined
    : 'must not contain a user or password: use `username` and `password`';
};

/** Headers that the agent sets itself, or that would change how the request is framed. */
const ownHeaders = /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|accept-encoding)$/i;

const header: format.Check = (name) => {
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name)) return 'must be the name of a header, such as X-Api-Version';
  return ownHeaders.test(name) ? 'must not be a header that the agent sets itself' : undefined;
};

/** A JSON pointer, or the name of a key at the top level. */
const keyOrPointer: format.Check = (value) =>
  value.startsWith('/') ? format.pointer(value) : format.allOf(format.notEmpty, format.pointer)(`/${value}`);

export const httpObjectKind = {
  'http-object': defineKind({
    description: 'An object behind the HTTP API of a service, such as a user of RabbitMQ',
    platforms: ['linux'],
    example:
      'url: http://127.0.0.1:8640/users/ada\nread_at: /users/0\nbody: { name: ada, tags: [monitoring], password: "example" }\nwrite_only: [password]\nmethod: PUT\nwrite_url: http://127.0.0.1:8640/users/ada\ncreate_method: POST\ncreate_url: http://127.0.0.1:8640/users\ndelete_method: DELETE\nheaders: { X-Api-Version: "2" }\nusername: admin\npassword: "example"\nca_file: /etc/ssl/certs/ca-certificates.crt\ntimeout: 10\nwait: 30',
    required: {
      url: formatted('http or https URL of the object, which GET reads', objectUrl, { pattern: '^https?://' }),
    },
    optional: {
      body: anyValue(
        'The keys that the object must have, with their values, which are sent as JSON; or text, which is sent and compared unchanged; required unless `ensure` is absent',
      ),
      read_at: formatted(
        'Position of the object in the response to GET, as a JSON pointer such as /data/0; default: the whole response',
        format.pointer,
        { pattern: '^/' },
      ),
      write_only: list(
        'Keys of `body` that the API does not return, such as passwords; each a name or a JSON pointer. They are sent whenever the declared value changes',
        formatted('A key', keyOrPointer),
      ),
      method: choice('Method that changes the object', ['PUT', 'POST', 'PATCH'], 'PUT'),
      write_url: formatted('URL for changes; default: `url`', objectUrl),
      create_method: choice('Method that creates the object; default: `method`', ['PUT', 'POST', 'PATCH']),
      create_url: formatted('URL for creation, such as the URL of a collection; default: `write_url`', objectUrl),
      delete_method: choice('Method that deletes the object', ['DELETE', 'POST'], 'DELETE'),
      headers: map(
        'Headers of all requests',
        header,
        text('A value, on one line', format.allOf(format.oneLine, format.maxLength(8000))),
      ),
      username: formatted(
        'User for basic authentication',
        format.allOf(format.notEmpty, format.oneLine, format.maxLength(1000), (name) =>
          name.includes(':') ? 'must not contain ":"' : undefined,
        ),
      ),
      password: text('Password of that user', format.allOf(format.oneLine, format.maxLength(4000))),
      ca_file: formatted(
        'File with the certificate authorities that are trusted to sign the certificate of the server; default: those of the machine',
        format.unixFile,
        { pattern: '^/' },
      ),
      timeout: integer('Seconds that one request may take; default: 30', 1, 300),
      wait: integer('Seconds that an apply waits for the server to answer; default: 30', 0, 600),
      ensure,
    },
    presentNeeds: ['body'],
    needs: { username: 'password', password: 'username' },
    sensitive: ['headers', 'password'],
  }),
};
