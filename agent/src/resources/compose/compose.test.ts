import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ResourceBodies } from '@muster/protocol/module';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { machineWith } from '../../converge/test/machine-with.ts';
import {
  composeMessage,
  fullReference,
  pathOfCompose,
  servicesOf,
  type WantedService,
} from '../../host/containers/compose-program.ts';
import { HostFailure } from '../../host/failure.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import type { SeenFile } from '../file-unix/seen.ts';
import type { Circumstances, Machine } from '../provider/provider.ts';
import type { ComposeBefore } from './before.ts';
import { compose } from './compose.ts';
import { type Declared, fileOf, hiddenIn, imageOf, inputsOf, projectOf } from './declared.ts';
import { diffProject, diffProjectRemoval, readiness, runsCompose } from './diff.ts';
import {
  beforeUp,
  hasDefinition,
  isOwnFile,
  isOwnProject,
  knownOf,
  type Mark,
  ownObjects,
  readMark,
  removeMark,
  withOwn,
  writeMark,
} from './mark.ts';
import { isOfCompose, type SeenContainer, type SeenProject, seenContainer } from './seen.ts';
import { expectTrusted, runTrusted } from './trust.ts';

type Body = ResourceBodies['compose'];

const content = 'services: { web: { image: "localhost/app:1" } }\n';
const path = '/srv/shop/compose.yaml';
const dotenv = '/srv/shop/.env';
const declare = (body: Partial<Body> = {}, sensitive_fields: string[] = []): Declared =>
  ({
    ...{ type: 'compose', key: 'compose:shop', identity: 'shop', module: 'site', id: null, name: null },
    ...{ depends_on: [], reload_on: [], restart_on: [], rerun_on: [] },
    body: { name: 'shop', path, content, ...body },
    sensitive_fields,
  }) as Declared;

const hash = 'a'.repeat(64);
const wanted = (more: Partial<WantedService> = {}): WantedService => ({
  ...{ name: 'web', hash, digest: 'digest-1', image: 'localhost/app:1', count: 1 },
  ...more,
});
const container = (more: Partial<SeenContainer> = {}): SeenContainer => ({
  ...{ id: '1'.repeat(64), service: 'web', hash, status: 'running', startedAt: '2030-01-01T00:00:00Z' },
  ...{ exitCode: 0, health: '', image: 'image-1', file: path },
  ...more,
});
const noFile: SeenFile = { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null } } as SeenFile;
const bytes = Buffer.from(content);
const sameFile = {
  found: {
    ...{ type: 'file', uid: 0, gid: 0, mode: 0o644, stamp: 'x', size: bytes.length },
    content: { bytes, size: bytes.length, sha256: '0'.repeat(64) },
  },
  ownership: { ownerName: 'root', groupName: 'root', wantedUid: 0, wantedGid: 0 },
} as unknown as SeenFile;
const mark = (more: Partial<Mark> = {}): Mark => ({
  ...{ path, sha256: null, started: true, foreign: { networks: [], volumes: [] }, own: null, services: {} },
  ...more,
});
const otherFile = {
  ...sameFile,
  found: { ...sameFile.found, content: { bytes: Buffer.from('x'), size: 1, sha256: 'f'.repeat(64) } },
} as SeenFile;
const seen = (more: Partial<SeenProject> = {}): SeenProject => ({
  ...{ missing: null, file: sameFile, mark: mark(), wanted: [wanted()], containers: [container()] },
  ...{ images: { 'localhost/app:1': 'image-1' }, networks: [], volumes: [], former: null },
  ...{ unread: null, inputs: [dotenv], rival: null },
  ...more,
});
const apply = { purpose: 'apply' as const, restartBy: [] };
const drift = { purpose: 'drift' as const, restartBy: [] };
const changesOf = (resource: Declared, project: SeenProject, circumstances: typeof apply | typeof drift = apply) =>
  diffProject(resource, project, circumstances).changes.map(({ field, from }) => `${field}: ${from}`);

describe('the output of Compose', () => {
  const config = `services:
  db: { image: postgres, deploy: { replicas: 0 } }
  web: { image: "localhost/app:1", scale: 2, environment: { A: b } }
  debug: { image: "localhost/app:1", profiles: [debug] }
`;

  test('yields the enabled services with the number of their containers', () => {
    expect(servicesOf(`web ${hash}\ndb ${'b'.repeat(64)}\n`, config)).toEqual([
      {
        ...{ name: 'db', hash: 'b'.repeat(64), digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
        ...{ image: 'docker.io/library/postgres:latest', count: 0 },
      },
      { name: 'web', hash, digest: expect.any(String), image: 'localhost/app:1', count: 2 },
    ]);
  });

  test('yields another digest for another environment and other labels, with the same hash', () => {
    const digestWith = (value: string) => servicesOf(`web ${hash}\n`, config.replace('A: b', `A: ${value}`))[0]?.digest;
    expect(digestWith('b')).toBe(digestWith('b'));
    expect(digestWith('c')).not.toBe(digestWith('b'));
    expect(digestWith('b }, labels: { l: d')).not.toBe(digestWith('b'));
  });

  test('shows its errors as one line, without hidden texts', () => {
    const first =
      "Creating network\nERROR: The Compose file '/proc/self/fd/3' is invalid because:\nUnsupported: horse\n";
    expect(composeMessage(first, ['horse'])).toBe("The Compose file 'compose.yaml' is invalid because: Unsupported: …");
    const second = 'time="x" level=warning msg="unset"\n Container x  Creating\nservices.web must be a mapping\n';
    expect(composeMessage(second)).toBe('services.web must be a mapping');
    expect(composeMessage('')).toBe('');
  });

  test.each([
    ['web', config],
    [`other ${hash}`, config],
    [`toString ${hash}`, config],
    [`web ${hash}`, 'services: [web]'],
    [`web ${hash}`, 'services: { web: { build: . } }'],
    [`web ${hash}`, '{'],
    [`web ${hash}`, ''],
  ])('refuses output that it does not understand: %j', (hashes, text) => {
    expect(() => servicesOf(hashes, text)).toThrow('are not understood');
  });

  test('throws only HostFailure, for any text', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (hashes, text) => {
        try {
          servicesOf(hashes, text);
        } catch (error) {
          expect(error).toBeInstanceOf(HostFailure);
        }
      }),
    );
  });

  test.each([
    ['nginx', 'docker.io/library/nginx:latest'],
    ['nginx:1.27', 'docker.io/library/nginx:1.27'],
    ['example/app', 'docker.io/example/app:latest'],
    ['localhost/app', 'localhost/app:latest'],
    ['localhost:5000/app', 'localhost:5000/app:latest'],
    ['ghcr.io/a/b:1', 'ghcr.io/a/b:1'],
    [`ghcr.io/a/b@sha256:${hash}`, `ghcr.io/a/b@sha256:${hash}`],
    [`ghcr.io/a/b:1@sha256:${hash}`, `ghcr.io/a/b@sha256:${hash}`],
    [`localhost:5000/a@sha256:${hash}`, `localhost:5000/a@sha256:${hash}`],
    [`nginx:1@sha256:${hash}`, `docker.io/library/nginx@sha256:${hash}`],
  ])('names an image: %s is %s', (image, reference) => {
    expect(fullReference(image)).toBe(reference);
  });
});

describe('the declaration', () => {
  test('refuses a secret in the file, of which the engine shows parts to every user', () => {
    expect(() => compose.check(declare({}, ['content']))).toThrow('declare the value in `environment`');
    expect(() => compose.check(declare({}, ['environment']))).not.toThrow();
  });

  test('makes the file as a declared file', () => {
    expect(fileOf(declare()).body).toMatchObject({ path, content, owner: 'root', mode: '0644' });
    expect(fileOf(declare({ ensure: 'absent' })).body).toEqual({ path, ensure: 'absent' });
  });

  test('passes the password only to its registry', () => {
    const login = { registry: 'ghcr.io', registry_user: 'ada', registry_password: 'pa55' };
    expect(imageOf(declare(login), 'ghcr.io/a/b:1').body).toMatchObject({ registry_password: 'pa55' });
    for (const image of ['docker.io/library/nginx:1', 'ghcr.io.example/a:1'])
      expect(imageOf(declare(login), image).body).not.toHaveProperty('registry_password');
  });

  test('reads the file on the machine, or a text in its place', () => {
    const resource = declare({ environment: { TOKEN: 'horse' }, profiles: ['debug'] });
    expect(projectOf(resource, null)).toMatchObject({ directory: '/srv/shop', file: { path } });
    expect(projectOf(resource, 'x')).toMatchObject({
      ...{ file: { text: 'x' }, profiles: ['debug'], variables: { TOKEN: 'horse' } },
    });
    expect(hiddenIn(resource)).toEqual(['horse']);
  });

  test.each<[Partial<Body>, string]>([
    [{ path: '/srv/../x' }, 'must not contain'],
    [{ path: '/srv/a,b/compose.yaml' }, 'the path "/srv/a,b/compose.yaml" must not contain commas'],
    [{ path: `/${'x'.repeat(1000)}` }, 'must be at most 1000 characters long'],
    [{ content: 'services: {}' }, 'the Compose file /srv/shop/compose.yaml must have `services`'],
    [{ environment: { 'A B': 'x' } }, 'cannot be passed'],
    [{ environment: { A: 'x\0' } }, 'cannot be passed'],
    [{ environment: { ALL_PROXY: 'x' } }, 'the variable "ALL_PROXY" cannot be passed'],
  ])('refuses %j', (body, message) => {
    expect(() => compose.check(declare(body))).toThrow(message);
  });

  test.each([
    ['services: { web: { image: "localhost/app:${TAG}" } }\n', '`image` of the service web'],
    ['services: { web: { image: a, container_name: "${TAG}" } }\n', '`container_name` of the service web'],
    [`${content}networks: { front: { name: "\${TAG}" } }\n`, '`name` of the network front'],
    [`${content}volumes: { data: { name: a-$TAG } }\n`, '`name` of the volume data'],
  ])('refuses a variable in a name that becomes an argument, if the variables contain a secret: %j', (text, place) => {
    expect(() => compose.check(declare({ content: text }))).not.toThrow();
    expect(() => compose.check(declare({ content: text }, ['environment']))).toThrow(
      `must not have a variable in the ${place},`,
    );
    expect(() => compose.check(declare({}, ['environment']))).not.toThrow();
  });

  test('refuses a file of the module that is too large, without fetching it', () => {
    const sized = (size: number) => ({
      ...declare(),
      body: { name: 'shop', path, source: 'a.yaml' },
      source: { sha256: hash, size },
    });
    expect(() => compose.check(sized(768 * 1024))).not.toThrow();
    expect(() => compose.check(sized(768 * 1024 + 1))).toThrow('must be at most 256 KiB long');
  });

  test('names the files from which Compose reads definitions', () => {
    const text = 'services: { web: { image: a, env_file: [a.env, /etc/b.env, ./a.env], label_file: ../labels } }';
    expect(inputsOf(declare(), text)).toEqual([dotenv, '/srv/shop/a.env', '/etc/b.env', '/srv/labels']);
    expect(inputsOf(declare(), content)).toEqual([dotenv]);
  });
});

describe('files that Compose reads by itself', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'muster-compose-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const inFolder = (more: string[] = []) => declare({ path: join(folder, 'compose.yaml') }, more);

  test('requires a directory in which only root can create files, also before it exists', () => {
    const sticky = machineWith({ shared: ['/srv/shop'] });
    expect(() => expectTrusted(path, sticky)).toThrow('users other than root can change the names in /srv/shop');
    expect(() => expectTrusted(path, machineWith({ shared: ['/srv'] }))).not.toThrow();
    const walk = new PathWalk();
    try {
      for (const name of ['/tmp/muster-none', '/tmp/muster-none/shop'])
        expect(() => expectTrusted(`${name}/compose.yaml`, { walk })).toThrow('can change the names in /tmp');
      expect(() => expectTrusted('/muster-none/shop/compose.yaml', { walk })).not.toThrow();
    } finally {
      walk.close();
    }
  });

  test('refuses a .env file that others can write, or a link', () => {
    const dotenv = join(folder, '.env');
    const check = () => expectTrusted(join(folder, 'compose.yaml'), machineWith());
    expect(check).not.toThrow();
    writeFileSync(dotenv, 'A=b\n');
    expect(check).not.toThrow();
    chmodSync(dotenv, 0o666);
    expect(check).toThrow(`Compose reads ${dotenv}: make it a regular file that only root can write`);
    rmSync(dotenv);
    symlinkSync('/etc/shadow', dotenv);
    expect(check).toThrow('make it a regular file');
  });

  test('checks the directory before each run of Compose', async () => {
    let runs = 0;
    const run = async () => void runs++;
    const shared = machineWith({ shared: [folder] });
    await expect(runTrusted(inFolder(), content, shared, run)).rejects.toThrow('users other than root');
    await expect(compose.observe(inFolder(), { purpose: 'drift' } as Circumstances, shared)).rejects.toThrow(
      'users other than root',
    );
    expect(runs).toBe(0);
    await runTrusted(inFolder(), content, machineWith(), run);
    expect(runs).toBe(1);
  });

  test('follows `env_file` and `label_file` only to files that no other user can change', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'muster-compose-env-'));
    try {
      for (const key of ['env_file', 'label_file']) {
        const file = join(elsewhere, key);
        const text = `services: { web: { image: a, ${key}: ${file} } }\n`;
        const run = (machine: Machine, declared: string | null) =>
          runTrusted(inFolder(), declared, machine, () => Promise.resolve('ran'));
        writeFileSync(join(folder, 'compose.yaml'), text);
        // Null stands for the file on the machine.
        for (const declared of [text, null]) {
          expect(await run(machineWith(), declared)).toBe('ran');
          await expect(run(machineWith({ shared: [elsewhere] }), declared)).rejects.toThrow(
            `users other than root can change the names in ${elsewhere}`,
          );
          writeFileSync(file, 'A=b\n');
          expect(await run(machineWith(), declared)).toBe('ran');
          chmodSync(file, 0o666);
          await expect(run(machineWith(), declared)).rejects.toThrow(`Compose reads ${file}: make it a regular file`);
          rmSync(file);
          execFileSync('mkfifo', ['-m', '600', file]);
          await expect(run(machineWith(), declared)).rejects.toThrow('make it a regular file');
          rmSync(file);
          symlinkSync('/etc/shadow', file);
          await expect(run(machineWith(), declared)).rejects.toThrow('make it a regular file');
          rmSync(file);
        }
      }
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  test('hides messages that may quote these files, or a secret of the Compose file', async () => {
    const fail = () => Promise.reject(new HostFailure('cannot start: horse'));
    const message = async (resource: Declared, text: string | null) =>
      String(await runTrusted(resource, text, machineWith(), fail).catch((error: Error) => error.message));
    expect(await message(inFolder(), content)).toBe('cannot start: horse');
    const hidden = (reason: string) =>
      expect.stringContaining(`cannot start: the message of Compose is not shown, because ${reason}; run`);
    expect(await message(inFolder(['environment']), content)).toEqual(hidden('`environment` contains a secret'));
    for (const text of [null, 'services: { web: { image: a, env_file: a.env } }'])
      expect(await message(inFolder(), text)).toEqual(hidden('an env_file may contain secrets'));
    // Version 2 of Compose may be installed only as a plugin of Docker.
    expect(await message(inFolder(['environment']), content)).toContain(
      `\`${pathOfCompose() ?? 'docker-compose'} --file`,
    );
    writeFileSync(join(folder, '.env'), 'A=horse\n');
    expect(await message(inFolder(), content)).toEqual(hidden(`${join(folder, '.env')} may contain secrets`));
  });
});

describe('the record of applied definitions', () => {
  const files = new Map<string, string>();
  const machine = {
    privateFiles: {
      read: (name: string) => files.get(name) ?? null,
      write: (name: string, text: string) => void files.set(name, text),
      remove: (name: string) => void files.delete(name),
    },
  };

  test('accepts the hashes in labels that Compose wrote for this definition, and no others', () => {
    const known = knownOf([wanted()], [container({ hash: 'other' }), container({ service: 'db' })]);
    expect(known).toEqual({ web: { digest: 'digest-1', hashes: ['other'] } });
    expect(hasDefinition(wanted(), { hash: 'other' }, known)).toBe(true);
    expect(hasDefinition(wanted(), { hash }, known)).toBe(false);
    expect(hasDefinition(wanted({ digest: 'digest-2' }), { hash: 'other' }, known)).toBe(false);
    expect(hasDefinition(wanted(), { hash }, {})).toBe(true);
    expect(hasDefinition(wanted(), { hash: 'other' }, {})).toBe(false);
  });

  test('keeps the record in a private file of the engine and the project', () => {
    const made = mark({ services: { web: { digest: 'd', hashes: ['h'] } } });
    expect(readMark(declare(), machine)).toBeNull();
    writeMark(declare(), made, machine);
    expect(readMark(declare(), machine)).toEqual(made);
    expect(readMark(declare({ engine: 'docker' }), machine)).toBeNull();
    removeMark(declare(), machine);
    expect(readMark(declare(), machine)).toBeNull();
  });

  test.each(['', '[]', '{}', '{"web":1}', JSON.stringify({ ...mark(), path: 1 })])(
    'claims nothing if it cannot be read: %j',
    (text) => {
      files.set('compose-podman-shop', text);
      expect(readMark(declare(), machine)).toBeNull();
      files.clear();
    },
  );

  test('claims a project only after it was started, and only containers of its file', () => {
    expect(isOwnProject(mark(), path, [container()])).toBe(true);
    expect(isOwnProject(mark(), path, [container(), container({ file: '/x' })])).toBe(false);
    expect(isOwnProject(mark({ started: false }), path, [container()])).toBe(false);
    expect(isOwnProject(mark(), '/x', [container({ file: '/x' })])).toBe(false);
    expect(isOwnProject(null, path, [])).toBe(false);
  });

  test('claims a file that was written, or that has the content that the agent was about to write or to remove', () => {
    const found = otherFile.found;
    expect(isOwnFile(mark(), path, found)).toBe(true);
    expect(isOwnFile(mark(), '/x', found)).toBe(false);
    expect(isOwnFile(mark({ sha256: 'f'.repeat(64) }), path, found)).toBe(true);
    expect(isOwnFile(mark({ sha256: '' }), path, found)).toBe(false);
    expect(isOwnFile(null, path, found)).toBe(false);
  });

  test('claims what its starts created, and nothing that others created before or between them', () => {
    const none = { networks: [], volumes: [] };
    const first = beforeUp(mark({ foreign: null }), { networks: ['shop_old'], volumes: [] });
    const found = { networks: ['shop_default', 'shop_old'], volumes: ['shop_data'] };
    const ended = withOwn(first, found);
    expect(ended.own).toEqual({ networks: ['shop_default'], volumes: ['shop_data'] });
    const later = { networks: [...found.networks, 'shop_by_hand'], volumes: found.volumes };
    expect(ownObjects(ended, 'networks', later.networks)).toEqual(['shop_default']);
    const second = withOwn(beforeUp(ended, later), { ...later, volumes: ['shop_data', 'shop_more'] });
    expect(second.own).toEqual({ networks: ['shop_default'], volumes: ['shop_data', 'shop_more'] });
    // Killed during `up`, and resumed.
    const killed = beforeUp(mark({ foreign: null }), none);
    expect(withOwn(beforeUp(killed, found), found).own).toEqual(found);
  });

  test('claims the networks and volumes that did not exist before the first start', () => {
    const made = mark({ foreign: { networks: ['shop_old'], volumes: [] } });
    expect(ownObjects(made, 'networks', ['shop_old', 'shop_default'])).toEqual(['shop_default']);
    for (const none of [null, mark({ foreign: null })]) expect(ownObjects(none, 'networks', ['shop_old'])).toEqual([]);
  });
});

describe('the difference', () => {
  test('finds nothing to do for a project as declared', () => {
    expect(diffProject(declare(), seen(), apply).action).toBe('none');
    expect(diffProject(declare(), seen({ images: {} }), apply).action).toBe('none');
  });

  test('creates a project that does not exist', () => {
    const found = diffProject(declare(), seen({ file: noFile, containers: [], mark: null }), apply);
    expect(found.action).toBe('create');
    expect(found.changes.map(({ field }) => field)).toEqual(expect.arrayContaining(['ensure', 'content', 'services']));
    expect(found.changes.filter(({ field }) => field === 'ensure')).toHaveLength(1);
  });

  test('names the services whose configuration, image, number, or state differs', () => {
    const other = container({ hash: 'b'.repeat(64) });
    expect(changesOf(declare(), seen({ containers: [other] }))).toEqual(['configuration: web']);
    expect(changesOf(declare(), seen({ images: { 'localhost/app:1': 'image-2' } }), drift)).toEqual(['images: web']);
    expect(changesOf(declare(), seen({ wanted: [wanted({ count: 2 })] }))).toEqual(['services: web: 1 of 2']);
    expect(changesOf(declare(), seen({ containers: [container({ status: 'exited' })] }))).toEqual([
      'services: web: exited',
    ]);
    expect(changesOf(declare(), seen({ containers: [container(), container({ service: 'old' })] }))).toEqual([
      'services: old: not declared',
    ]);
  });

  test('accepts a job that ended with 0, and no other service', () => {
    const ended = (exitCode: number) => seen({ containers: [container({ status: 'exited', exitCode })] });
    expect(changesOf(declare({ jobs: ['web'] }), ended(0))).toEqual([]);
    expect(changesOf(declare({ jobs: ['web'] }), ended(1))).toEqual(['services: web: exited']);
    expect(changesOf(declare({ jobs: ['other'] }), ended(0))).toEqual(['services: web: exited']);
  });

  test('runs Compose only if services differ, not for a comment in the file', () => {
    const commented = diffProject(declare({ content: `${content}# x\n` }), seen(), apply);
    expect([commented.changes.map(({ field }) => field), runsCompose(commented)]).toEqual([['content'], false]);
    expect(runsCompose(diffProject(declare(), seen({ containers: [] }), apply))).toBe(true);
  });

  test('restarts running services after a trigger, but not those that it creates', () => {
    const after = { purpose: 'apply' as const, restartBy: ['config'] };
    expect(diffProject(declare(), seen(), after)).toMatchObject({ action: 'restart', changes: [] });
    expect(diffProject(declare(), seen({ containers: [] }), after).action).toBe('create');
    const off = seen({ containers: [container({ status: 'exited' })] });
    expect(diffProject(declare(), off, after).action).toBe('update');
  });

  test('refuses a project that Muster did not start, unless it changes nothing', () => {
    const foreign = (more: Partial<SeenContainer> = {}) =>
      seen({ mark: null, containers: [container({ status: 'exited', ...more })] });
    expect(() => diffProject(declare(), foreign(), apply)).toThrow('`force: true` takes it over');
    expect(diffProject(declare({ force: true }), foreign(), apply).action).toBe('update');
    expect(() => diffProject(declare({ force: true }), foreign({ file: '/x' }), apply)).toThrow('run from /x');
    expect(() => diffProject(declare({ force: true, ensure: 'absent' }), foreign(), apply)).toThrow(
      'could not restore',
    );
    expect(diffProject(declare(), foreign(), drift).action).toBe('update');
    expect(diffProject(declare(), seen({ mark: null }), apply).action).toBe('none');
  });

  test('refuses containers of another file, even if Muster started the project', () => {
    const other = (more: Partial<SeenProject>) =>
      seen({ containers: [container(), container({ service: 'old', file: '/x' })], ...more });
    for (const force of [false, true])
      expect(() => diffProject(declare({ force }), other({}), apply)).toThrow(
        'run from /x, and Muster did not start them',
      );
    expect(() => diffProject(declare({ ensure: 'absent' }), other({}), apply)).toThrow('run from /x');
    const stopped = { containers: [container({ status: 'exited' })] };
    expect(() => diffProject(declare(), other({ ...stopped, mark: mark({ started: false }) }), apply)).toThrow(
      'Muster did not start the project shop',
    );
    expect(diffProject(declare(), other({}), drift).action).toBe('update');
  });

  test('refuses another path for a project of Muster', () => {
    const moved = seen({ mark: mark({ path: '/srv/old/compose.yaml' }) });
    for (const ensure of ['present', 'absent'] as const)
      expect(() => diffProject(declare({ ensure, force: true }), moved, apply)).toThrow(
        'Muster made the project shop from /srv/old/compose.yaml, and does not move it to /srv/shop/compose.yaml',
      );
  });

  test('refuses to change or remove a file that Muster did not write, without `force`', () => {
    for (const ensure of ['present', 'absent'] as const)
      for (const none of [null, mark({ sha256: '' })]) {
        const foreign = seen({ file: otherFile, containers: [], mark: none });
        expect(() => diffProject(declare({ ensure }), foreign, apply)).toThrow(
          'Muster did not write /srv/shop/compose.yaml',
        );
        expect(diffProject(declare({ ensure, force: true }), foreign, apply).action).not.toBe('none');
        expect(diffProject(declare({ ensure }), foreign, drift).action).not.toBe('none');
      }
    expect(changesOf(declare(), seen({ file: otherFile }))[0]).toContain('content');
    expect(diffProject(declare(), seen({ containers: [], mark: null }), apply).action).toBe('create');
  });

  test('plans with the later content of a file that Compose reads, and applies only what then differs', () => {
    const plan = (path: string) => ({
      ...{ purpose: 'plan' as const, restartBy: [] },
      willChange: (each: string) => each === path,
    });
    expect(diffProject(declare(), seen(), plan(dotenv))).toMatchObject({
      ...{ action: 'update', changes: [{ field: 'configuration', to: `with the later content of ${dotenv}` }] },
    });
    const other = seen({ containers: [container({ hash: 'b'.repeat(64) })] });
    expect(diffProject(declare(), other, plan(dotenv)).changes).toMatchObject([
      { field: 'configuration', from: 'web' },
    ]);
    expect(diffProject(declare(), seen(), plan('/srv/shop/other')).action).toBe('none');
    expect(diffProject(declare(), seen(), { ...plan(dotenv), purpose: 'apply' }).action).toBe('none');
  });

  test('expects a plan to succeed if an earlier step changes a file that Compose could not read', () => {
    const unread = seen({ unread: 'cannot read the services: no a.env', wanted: null, containers: [], images: {} });
    const awaits = [{ kind: 'programs', message: 'cannot read the services: no a.env' }];
    const willChange = (each: string) => each === dotenv;
    const planned = diffProject(declare(), unread, { purpose: 'plan', restartBy: [], willChange });
    expect([planned.action, planned.awaits]).toEqual(['create', undefined]);
    expect(diffProject(declare(), unread, { purpose: 'plan', restartBy: [], willChange: () => false })).toMatchObject({
      ...{ action: 'create', awaits },
    });
    expect(diffProject(declare(), unread, { ...apply, willChange })).toMatchObject({ action: 'create', awaits });
  });

  test('refuses a file that belongs to another resource, even if that is removed', () => {
    const rival = { label: 'file-unix /srv/shop/compose.yaml', stays: false };
    for (const ensure of ['present', 'absent'] as const)
      expect(() => diffProject(declare({ ensure }), seen({ rival }), apply)).toThrow(
        '/srv/shop/compose.yaml is managed as file-unix /srv/shop/compose.yaml here: remove that resource and apply',
      );
    expect(diffProject(declare(), seen({ rival }), drift).action).toBe('none');
  });

  test('awaits a missing program, or an image that is not pulled', () => {
    const missing = { kind: 'programs' as const, message: 'docker-compose is not installed' };
    const unknown = seen({ missing, wanted: null, containers: [], images: {} });
    expect(diffProject(declare(), unknown, apply)).toMatchObject({ action: 'create', awaits: [missing] });
    expect(diffProject(declare({ pull: 'never' }), seen({ containers: [], images: {} }), apply).awaits).toMatchObject([
      { message: 'there is no image localhost/app:1 on this machine, and `pull` is never' },
    ]);
    expect(diffProject(declare(), seen({ containers: [], images: {} }), apply)).not.toHaveProperty('awaits');
  });

  test('reports only the file as drift if its content is not fetched', () => {
    const found = seen({ file: otherFile, wanted: null, containers: [container({ status: 'exited' })] });
    expect(changesOf(declare(), found, drift).map((text) => text.split(':')[0])).toEqual(['content']);
  });

  test('removes a project that is declared absent', () => {
    const gone = declare({ ensure: 'absent' });
    expect(diffProject(gone, seen({ file: noFile, containers: [] }), apply).action).toBe('none');
    for (const left of [{ networks: ['shop_default'], containers: [] }, { containers: [container()] }])
      expect(diffProject(gone, seen({ file: noFile, ...left }), apply)).toMatchObject({
        ...{ action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }] },
      });
    const foreign = mark({ foreign: { networks: ['shop_default'], volumes: [] } });
    const network = { file: noFile, containers: [], networks: ['shop_default'] };
    for (const one of [null, foreign])
      expect(diffProject(gone, seen({ ...network, mark: one }), apply).action).toBe('none');
  });

  test('awaits an engine that does not respond, also if the project is declared absent', () => {
    const missing = { kind: 'units' as const, message: 'docker does not respond' };
    const unknown = seen({ missing, file: noFile, wanted: null, containers: [], images: {} });
    expect(diffProject(declare({ ensure: 'absent' }), unknown, apply)).toMatchObject({
      ...{ action: 'remove', changes: [{ field: 'ensure', from: 'unknown', to: 'absent' }], awaits: [missing] },
    });
    const uninstalled = { ...unknown, missing: { ...missing, kind: 'programs' as const } };
    expect(diffProject(declare({ ensure: 'absent' }), uninstalled, apply).action).toBe('none');
  });
});

describe('removal', () => {
  const before = (more: Partial<ComposeBefore> = {}): ComposeBefore => ({
    ...{ file: null, was: 'absent', images: [] },
    ...more,
  });
  const copies = { read: () => null };
  const remove = (record: ComposeBefore, project: SeenProject, body: Partial<Body> = {}) =>
    diffProjectRemoval(declare(body), record, project, copies);

  test('removes what exists, and volumes only if declared and new', () => {
    expect(remove(before(), seen()).changes).toHaveLength(1);
    const empty = { containers: [], volumes: ['shop_data'] };
    expect(remove(before(), seen(empty)).changes).toEqual([]);
    expect(remove(before(), seen(empty), { remove_volumes: true }).changes).toHaveLength(1);
    const foreign = mark({ foreign: { networks: ['shop_default'], volumes: ['shop_data'] } });
    expect(remove(before(), seen({ ...empty, mark: foreign }), { remove_volumes: true }).changes).toEqual([]);
    const network = { containers: [], networks: ['shop_default'] };
    expect(remove(before(), seen(network)).changes).toHaveLength(1);
    expect(remove(before(), seen({ ...network, mark: foreign })).changes).toEqual([]);
  });

  test('removes the mark even if nothing else is left', () => {
    const nothingLeft = { containers: [], file: noFile };
    expect(remove(before(), seen(nothingLeft))).toMatchObject({ action: 'remove', message: 'already removed' });
    expect(remove(before(), seen({ ...nothingLeft, mark: null })).action).toBe('none');
  });

  const former = [{ service: 'web', image: 'localhost/app:1', hash, count: 1, running: true }];
  test('refuses to remove containers that Muster did not start', () => {
    expect(() => remove(before(), seen({ mark: mark({ started: false }) }))).toThrow('remove them by hand');
    const other = { containers: [container({ file: '/x' })] };
    expect(() => remove(before(), seen(other))).toThrow('run from /x');
    expect(() => remove(before({ was: former }), seen(other))).toThrow('run from /x');
    expect(remove(before(), seen(other), { ensure: 'absent' }).changes).toEqual([]);
  });

  test('restores the file at the recorded path, even if another one was declared since', () => {
    const file = { path, before: { was: 'absent' as const } };
    const removed = remove(before({ file }), seen({ containers: [] }), { path: '/srv/other/compose.yaml' });
    expect(removed.diff).toContain(`--- ${path}`);
  });

  test('removes the project of the recorded path, even if the agent did not change its file', () => {
    const moved = { path: '/srv/other/compose.yaml' };
    expect(remove(before(), seen(), moved)).toMatchObject({ action: 'remove', changes: [{ field: 'ensure' }] });
  });

  test('keeps a file that another resource has after the apply', () => {
    const file = { path, before: { was: 'absent' as const } };
    const rival = { label: 'file-unix /srv/shop/compose.yaml', stays: true };
    const kept = remove(before({ file }), seen({ containers: [], rival }));
    expect([kept.diff, kept.message]).toEqual([null, `${rival.label} declares ${path}, so it stays`]);
    expect(remove(before({ file }), seen({ containers: [], rival: { ...rival, stays: false } })).diff).not.toBeNull();
  });

  test('keeps a file that Muster did not write, without `force`', () => {
    const file = { path, before: { was: 'absent' as const } };
    const written = { containers: [], file: otherFile };
    expect(remove(before({ file }), seen(written)).diff).not.toBeNull();
    for (const foreign of [null, mark({ sha256: 'e'.repeat(64) })]) {
      const kept = remove(before({ file }), seen({ ...written, mark: foreign }));
      expect([kept.diff, kept.message]).toEqual([null, `Muster did not write ${path}, so it stays`]);
      expect(remove(before({ file }), seen({ ...written, mark: foreign }), { force: true }).diff).not.toBeNull();
    }
  });

  test('starts earlier services again, or keeps containers that cannot be restored', () => {
    expect(remove(before({ was: former }), seen({ mark: null }))).toMatchObject({
      ...{ action: 'none', message: 'already in its original state' },
    });
    for (const one of [{ status: 'exited' }, { hash: 'b' }, { service: 'other' }])
      expect(remove(before({ was: former }), seen({ containers: [container(one)] }))).toMatchObject({
        ...{ action: 'remove', changes: [{ field: 'services', to: 'as before' }] },
      });
    expect(remove(before({ was: 'kept' }), seen({ mark: null }))).toMatchObject({ action: 'none' });
    expect(remove(before({ was: 'ours' }), seen())).toMatchObject({ action: 'none' });
  });

  test('needs Compose and the images of earlier services only if it starts those again', () => {
    const missing = { kind: 'programs' as const, message: 'docker-compose is not installed' };
    const changed = { containers: [container({ hash: 'b' })], mark: null };
    expect(() => remove(before({ was: former }), seen({ ...changed, missing }))).toThrow(
      'can be neither removed nor restored: docker-compose is not installed',
    );
    expect(remove(before({ was: former }), seen({ mark: null, missing })).action).toBe('none');
    expect(() => remove(before({ was: former }), seen({ ...changed, images: {} }), { pull: 'never' })).toThrow(
      'cannot be restored: there is no image localhost/app:1 on this machine',
    );
    expect(remove(before({ was: former }), seen({ ...changed, images: {} })).action).toBe('remove');
    expect(remove(before({ was: former }), seen({ mark: null, images: {} }), { pull: 'never' }).action).toBe('none');
  });

  test('fails without the program of the engine', () => {
    const missing = { kind: 'programs' as const, message: 'podman is not installed' };
    const unknown = seen({ missing, wanted: null, containers: [] });
    expect(() => remove(before(), unknown)).toThrow('can be neither removed nor restored: podman is not installed');
    expect(remove(before(), unknown, { ensure: 'absent' }).changes).toEqual([]);
  });
});

describe('an interrupted change', () => {
  const wasApplied = (action: 'restart' | 'update', then: SeenContainer, now: SeenContainer) =>
    compose.wasApplied?.(declare(), compose.inBrief(seen({ containers: [then] })), seen({ containers: [now] }), {
      ...{ action, changes: [], diff: null },
    });

  test('counts as finished if nothing differs, and a restart if the container started again', () => {
    const later = container({ startedAt: '2030-01-01T00:00:09Z' });
    expect(wasApplied('update', container(), container())).toBe(true);
    expect(wasApplied('update', container(), container({ status: 'exited' }))).toBe(false);
    expect(wasApplied('restart', container(), container())).toBe(false);
    expect(wasApplied('restart', container(), later)).toBe(true);
  });
});

test.each<[Partial<SeenContainer>, ReturnType<typeof readiness>]>([
  [{}, { waiting: [], failed: [] }],
  [{ health: 'healthy' }, { waiting: [], failed: [] }],
  [{ health: 'starting' }, { waiting: ['web is starting'], failed: [] }],
  [{ status: 'created' }, { waiting: ['web is created; see `podman logs 111111111111`'], failed: [] }],
  [
    { status: 'exited', exitCode: 3 },
    { waiting: [], failed: ['web exited with 3; see `podman logs 111111111111`'] },
  ],
  [{ service: 'other' }, { waiting: ['web has 0 of 1 containers'], failed: [] }],
])('reports whether a service is ready: %j', (more, expected) => {
  expect(readiness(declare(), [wanted()], [container(more)])).toEqual(expected);
});

test('counts a container only if it has a label of Compose that its image does not have', () => {
  const labels = { 'com.docker.compose.project': 'shop', 'com.docker.compose.config-hash': hash, other: 'x' };
  expect(isOfCompose(labels, {})).toBe(true);
  expect(isOfCompose({ ...labels, other: 'y' }, labels)).toBe(false);
  expect(isOfCompose({ ...labels, 'com.docker.compose.config-hash': 'other' }, labels)).toBe(true);
});

test('reads the labels of a container, which anyone who creates containers can write', () => {
  const found = { ...container(), name: 'x', labels: { 'com.docker.compose.service': 'x'.repeat(500) } };
  expect(seenContainer(found as never)).toMatchObject({ service: `${'x'.repeat(100)}…`, hash: '', file: '' });
  const ofProject = (files: string, directory: string) =>
    seenContainer({
      ...found,
      labels: {
        'com.docker.compose.project.config_files': files,
        'com.docker.compose.project.working_dir': directory,
      },
    } as never).file;
  expect(ofProject('compose.yaml', '/srv/shop')).toBe('/srv/shop/compose.yaml');
  expect(ofProject('/srv/a.yaml,b.yaml', '/srv/shop')).toBe('/srv/a.yaml,/srv/shop/b.yaml');
  expect(ofProject('compose.yaml', '')).toBe('compose.yaml');
  // Differs from every path that can be declared.
  const long = `/${'x'.repeat(999)}`;
  expect(ofProject(long, '')).toBe(long);
  expect(ofProject(`${long}y`, '')).toBe(`${long}…`);
});
