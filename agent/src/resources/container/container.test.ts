import type { ResourceBodies } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isAbsence, messageOf, withoutHidden } from '../../host/containers/engine.ts';
import { containersByName, inspectedContainer, inspectedImage } from '../../host/containers/inspected.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider/provider.ts';
import { container } from './container.ts';
import {
  createArguments,
  type Declared,
  definitionLabel,
  definitionOf,
  differingFields,
  environmentFile,
  namedVolumes,
  parseDefinition,
} from './definition.ts';
import { type ContainerBefore, diffContainer, diffContainerRemoval } from './diff.ts';
import { authenticationFile, manifestOf, memberFor } from './registry.ts';
import { type SeenContainer, type SeenContainers, seenContainer } from './seen.ts';

type Body = ResourceBodies['container'];
const image = 'docker.io/library/nginx:1.27';
const declare = (body: Partial<Body> = {}): Declared =>
  ({ type: 'container', body: { name: 'web', image, ...body } }) as Declared;
const apply = { purpose: 'apply' as const, restartBy: [] };
const drift = { purpose: 'drift' as const, restartBy: [] };
const imageId = '1'.repeat(64);

const running = (body: Partial<Body> = {}, more: Partial<SeenContainer> = {}): SeenContainer => ({
  id: 'a'.repeat(64),
  status: 'running',
  startedAt: '2030-01-01T00:00:00Z',
  isOurs: true,
  definition: definitionOf(declare(body).body),
  image: imageId,
  imageName: image,
  restart: 'no',
  memory: 0,
  nanoCpus: 0,
  networks: ['podman'],
  differsInEnvironment: false,
  ...more,
});
const seen = (current: SeenContainer | null, more: Partial<SeenContainers> = {}): SeenContainers => ({
  ...{ missing: null, current, fresh: null, old: null, kept: null, image: imageId, remoteImage: null },
  ...{ isSkopeoMissing: false, missingNetworks: [], volumes: [], taken: [], ...more },
});
const fieldsOf = (resource: Declared, state: SeenContainers, circumstances: typeof apply | typeof drift = apply) =>
  diffContainer(resource, state, circumstances).changes.map(({ field }) => field);

describe('definition', () => {
  test('ignores the order of ports, labels, and variables', () => {
    const one = { ports: ['80:80', '443:443'], labels: { a: '1', b: '2' }, environment: { A: '1', B: '2' } };
    const other = { ports: ['443:443', '80:80'], labels: { b: '2', a: '1' }, environment: { B: '9', A: '8' } };
    expect(definitionOf(declare(one).body)).toEqual(definitionOf(declare(other).body));
    expect(JSON.stringify(definitionOf(declare(one).body))).toBe(JSON.stringify(definitionOf(declare(other).body)));
    expect(
      differingFields(
        definitionOf(declare({ command: ['a', 'b'] }).body),
        definitionOf(declare({ command: ['b', 'a'] }).body),
      ),
    ).toEqual(['command']);
  });

  test('reads a definition from its label without changes, and ignores a label that is not a definition', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.string()), fc.array(fc.string()), (labels, command) => {
        const { body } = declare({ labels, command, memory: '64M', read_only: true });
        const label = createArguments(body, 'x').find((argument) => argument.startsWith(`--label=${definitionLabel}=`));
        const parsed = parseDefinition(label?.slice(`--label=${definitionLabel}=`.length));
        expect(differingFields(parsed ?? {}, definitionOf(body))).toEqual([]);
      }),
    );
    for (const label of [undefined, '', '[]', 'null', '1', '{', `{"image":"${'x'.repeat(200_000)}"}`])
      expect(parseDefinition(label)).toBeNull();
  });

  test('keeps environment values and the password out of the arguments and the label', () => {
    const body: Partial<Body> = {
      environment: { TOKEN: 'horse-battery', OTHER: 'staple-9' },
      registry_user: 'ada',
      registry_password: 'pa55-word',
    };
    const text = JSON.stringify(createArguments(declare(body).body, 'web-muster-new'));
    expect(text).not.toMatch(/horse|staple|pa55|YWRh/);
    expect(text).toContain('--env-file=/proc/self/fd/3');
    expect(environmentFile(declare(body).body)).toBe('TOKEN=horse-battery\nOTHER=staple-9\n');
    expect(authenticationFile(declare(body).body, 'podman')).toBe(
      '{"auths":{"docker.io":{"auth":"YWRhOnBhNTUtd29yZA=="}}}',
    );
    expect(authenticationFile(declare(body).body, 'docker')).toContain('"https://index.docker.io/v1/"');
  });

  test('passes each option as a single argument, so that no value is read as an option', () => {
    const args = createArguments(
      declare({ user: '-u', ports: ['80:80'], volumes: ['data:/data'], command: ['--rm', '-it'], cpus: '1.5' }).body,
      'web-muster-new',
    );
    const position = args.indexOf(image);
    expect(args.slice(1, position).every((argument) => argument.startsWith('--'))).toBe(true);
    expect(args.slice(position)).toEqual([image, '--rm', '-it']);
    expect(namedVolumes(declare({ volumes: ['/srv:/srv:ro', 'b:/b', 'a:/a', 'a:/c'] }).body)).toEqual(['a', 'b']);
  });

  test.each<[Partial<Body>, string]>([
    [{ networks: ['host', 'front'] }, 'cannot be combined'],
    [{ environment: { A: 'one\ntwo' } }, 'cannot be passed'],
    [{ environment: { 'A*': 'x' } }, 'cannot be passed'],
    [{ engine: 'docker', pull: 'always' }, 'needs Podman'],
    [{ command: ['x'.repeat(130_000)] }, 'too long'],
  ])('refuses %j', (body, message) => {
    expect(() => container.check(declare(body))).toThrow(message);
  });
});

describe('difference', () => {
  test('plans no change for a container with the same definition', () => {
    const body = { environment: { A: '1' }, ports: ['80:80'], networks: ['back', 'front'] };
    const state = seen(running(body, { networks: ['back', 'front'] }));
    expect(diffContainer(declare(body), state, apply).action).toBe('none');
    expect(diffContainer(declare(body), { ...state, image: null }, apply).action).toBe('none');
  });

  test("names each field that differs, in the definition and in the engine's description", () => {
    const body: Partial<Body> = { restart: 'always', memory: '64M', cpus: '1.5', networks: ['front'] };
    const current = running(body, { restart: 'always', memory: 64 * 1024 ** 2, nanoCpus: 1.5e9, networks: ['front'] });
    expect(diffContainer(declare(body), seen(current), apply).action).toBe('none');
    const changed = { ...current, restart: 'no', memory: 1, nanoCpus: 1e9, networks: ['back'], status: 'exited' };
    expect(fieldsOf(declare(body), seen(changed), drift)).toEqual(['networks', 'restart', 'memory', 'cpus', 'state']);
    expect(fieldsOf(declare({ ...body, read_only: true, labels: { a: 'b' } }), seen(current))).toEqual([
      'labels',
      'read_only',
    ]);
    expect(diffContainer(declare({ ...body, image: 'localhost/x:2' }), seen(current), apply).changes).toEqual([
      { field: 'image', from: image, to: 'localhost/x:2' },
    ]);
    expect(diffContainer(declare(body), seen(current, { image: '2'.repeat(64) }), apply).changes).toEqual([
      { field: 'image', from: '1'.repeat(12), to: '2'.repeat(12) },
    ]);
    expect(fieldsOf(declare(body), seen(current, { remoteImage: '3'.repeat(64) }))).toEqual(['image']);
  });

  test('shows the names of environment variables, but not their values', () => {
    const before = running({ environment: { OLD: 'one' } });
    expect(diffContainer(declare({ environment: { TOKEN: 'secret' } }), seen(before), apply).changes).toEqual([
      { field: 'environment', from: 'OLD', to: 'TOKEN' },
    ]);
    const rotated = running({ environment: { TOKEN: 'former' } }, { differsInEnvironment: true });
    expect(diffContainer(declare({ environment: { TOKEN: 'secret' } }), seen(rotated), apply).changes).toEqual([
      { field: 'environment', from: null, to: null },
    ]);
  });

  test('takes over, only with `force`, a container that the agent did not create', () => {
    const others = running({}, { isOurs: false, definition: null });
    expect(() => diffContainer(declare(), seen(others), apply)).toThrow('`force: true` replaces it');
    expect(fieldsOf(declare({ force: true }), seen(others))).toEqual(['created_by']);
    expect(fieldsOf(declare(), seen(others, { image: null }), drift)).toEqual(['created_by', 'image']);
    expect(() => diffContainer(declare({ force: true }), seen(others, { kept: others }), apply)).toThrow(
      'already keeps an earlier one as web-muster-before',
    );
    expect(() => diffContainer(declare({ ensure: 'absent' }), seen(others, { kept: others }), apply)).toThrow(
      'already keeps',
    );
    const taken = { taken: ['web-muster-new'] };
    expect(() => diffContainer(declare({ user: '1' }), seen(running(), taken), apply)).toThrow(
      'needs the name web-muster-new',
    );
    expect(diffContainer(declare(), seen(running(), taken), drift).action).toBe('none');
    const atBoot = { ...others, restart: 'always' };
    expect(() => diffContainer(declare({ force: true }), seen(atBoot), apply)).toThrow('starts at every boot');
    expect(() => diffContainer(declare({ ensure: 'absent' }), seen(atBoot), apply)).toThrow('starts at every boot');
    expect(diffContainer(declare({ engine: 'docker', force: true }), seen(atBoot), apply).action).toBe('update');
  });

  test('does not count a container that is restarted repeatedly as running', () => {
    const loops = running({}, { status: 'restarting' });
    expect(fieldsOf(declare(), seen(loops), drift)).toEqual(['state']);
    expect(fieldsOf(declare({ state: 'stopped' }), seen(loops))).toEqual(['state']);
  });

  test('restarts a running container after a trigger, and removes the remains of an interrupted apply', () => {
    const triggered = { purpose: 'apply' as const, restartBy: ['config'] };
    expect(diffContainer(declare(), seen(running()), triggered)).toMatchObject({ action: 'restart', changes: [] });
    expect(
      diffContainer(declare({ state: 'stopped' }), seen(running({}, { status: 'exited' })), triggered).action,
    ).toBe('none');
    expect(fieldsOf(declare(), seen(running(), { old: running() }))).toEqual(['leftover']);
    expect(fieldsOf(declare({ ensure: 'absent' }), seen(null, { fresh: running() }))).toEqual(['leftover']);
  });

  test('waits for the engine, a network, and an image that is never pulled', () => {
    const waits = (body: Partial<Body>, more: Partial<SeenContainers>) =>
      diffContainer(declare(body), seen(null, more), apply).awaits?.map(({ message }) => message);
    expect(waits({}, { missing: { kind: 'programs', message: 'podman is not installed' } })).toEqual([
      'podman is not installed',
    ]);
    expect(waits({ networks: ['front'] }, { missingNetworks: ['front'] })?.[0]).toContain(
      'podman network create front',
    );
    expect(waits({ pull: 'never' }, { image: null })?.[0]).toContain('`pull` is never');
    expect(waits({ pull: 'never' }, {})).toBeUndefined();
    expect(waits({ pull: 'always' }, { isSkopeoMissing: true })?.[0]).toContain('skopeo is not installed');
    const unknown = diffContainer(declare(), seen(running(), { isSkopeoMissing: true }), apply);
    expect(unknown).toMatchObject({ changes: [{ field: 'image' }], awaits: [{ kind: 'programs' }] });
  });
});

describe('removal', () => {
  const before = (was: ContainerBefore['was']): ContainerBefore => ({ was, images: [], volumes: [] });
  const earlier = { id: 'b'.repeat(64), running: true, restart: 'no' };
  const others = running({}, { isOurs: false, id: 'c'.repeat(64) });

  test('removes the container, but not one that the agent did not create', () => {
    expect(diffContainerRemoval(declare(), before('absent'), seen(running())).action).toBe('remove');
    expect(diffContainerRemoval(declare(), before('absent'), seen(null)).message).toBe('already removed');
    expect(diffContainerRemoval(declare(), before('absent'), seen(others)).action).toBe('none');
  });

  test('records the images and volumes that do not exist yet, but no container that an agent created', async () => {
    const resource = declare({ volumes: ['a:/a', 'b:/b'], remove_volumes: true });
    const difference = diffContainer(resource, seen(null), apply);
    const remember = (state: SeenContainers, earlier: ContainerBefore | null = null) =>
      container.remember(resource, state, difference, earlier, {} as Machine);
    const record = await remember(seen(null, { image: null, volumes: ['b'] }));
    expect(record).toEqual({ was: 'absent', images: [image], volumes: ['a'] });
    expect(await remember(seen(running(), { volumes: ['a', 'b'] }), record)).toEqual(record);
    expect(await remember(seen(running(), { volumes: ['a', 'b'] }))).toEqual(before('absent'));
  });

  test('records a container that the agent did not create and that a later change displaces', async () => {
    const resource = declare({ force: true });
    const remember = (state: SeenContainers, was: ContainerBefore['was']) =>
      container.remember(resource, state, diffContainer(resource, seen(null), apply), before(was), {} as Machine);
    expect((await remember(seen(others), 'absent')).was).toEqual({ id: others.id, running: true, restart: 'no' });
    expect((await remember(seen(others), earlier)).was).toMatchObject({ id: others.id });
    expect((await remember(seen({ ...others, id: earlier.id, status: 'exited' }), earlier)).was).toEqual(earlier);
    expect((await remember(seen(running()), earlier)).was).toEqual(earlier);
  });

  test('fails if the engine is missing, unless there is nothing to remove', () => {
    const gone = seen(null, { missing: { kind: 'programs', message: 'podman is not installed' } });
    for (const was of ['absent', earlier] as const)
      expect(() => diffContainerRemoval(declare(), before(was), gone)).toThrow('neither removed nor restored');
    expect(diffContainerRemoval(declare(), before('ours'), gone).action).toBe('none');
    expect(diffContainerRemoval(declare({ ensure: 'absent' }), before('absent'), gone).action).toBe('none');
  });

  test("keeps the agent's container when a trial is reverted, but removes a container that did not exist before the trial", () => {
    const record = (state: SeenContainers) => container.rememberForTrial?.(declare(), state) ?? before('absent');
    expect(diffContainerRemoval(declare(), record(seen(running())), seen(running())).action).toBe('none');
    expect(diffContainerRemoval(declare(), record(seen(null)), seen(running())).action).toBe('remove');
    expect(record(seen(others)).was).toMatchObject({ id: others.id, running: true });
  });

  test('restores the earlier container, but does not replace one that the agent did not create', () => {
    const kept = running({}, { isOurs: false, id: earlier.id, status: 'exited' });
    expect(diffContainerRemoval(declare(), before(earlier), seen(running(), { kept })).action).toBe('remove');
    expect(() => diffContainerRemoval(declare(), before(earlier), seen(others, { kept }))).toThrow('did not create');
    expect(() => diffContainerRemoval(declare({ force: true }), before(earlier), seen(others, { kept }))).toThrow(
      'did not create',
    );
    expect(diffContainerRemoval(declare(), before(earlier), seen(running(), { kept: others })).message).toContain(
      'no longer exists',
    );
    expect(diffContainerRemoval(declare(), before(earlier), seen(running())).message).toContain('no longer exists');
    // The agent was killed after it had renamed the container.
    expect(diffContainerRemoval(declare(), before(earlier), seen(kept)).changes).toEqual([
      { field: 'state', from: 'exited', to: 'running' },
    ]);
    expect(diffContainerRemoval(declare(), before(earlier), seen({ ...kept, status: 'running' })).action).toBe('none');
  });
});

describe('output of an engine', () => {
  const described = {
    Id: 'a'.repeat(64),
    Name: '/web',
    Image: `sha256:${imageId}`,
    State: { Status: 'running', StartedAt: 'now', ExitCode: 0 },
    Config: {
      Image: image,
      Env: ['A=b=c', 'EMPTY='],
      Labels: { 'muster.container': 'web', 'muster.definition': '{"image":"x"}' },
    },
    HostConfig: {
      RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 3 },
      Memory: 5,
      CpuQuota: 150_000,
      CpuPeriod: 100_000,
    },
    NetworkSettings: { Networks: { front: {}, back: {} } },
  };

  test('parses the container and image descriptions of both engines', () => {
    const docker = inspectedContainer(described);
    expect(docker).toMatchObject({
      name: 'web',
      image: imageId,
      restart: 'on-failure:3',
      nanoCpus: 1.5e9,
      networks: ['back', 'front'],
    });
    expect(docker.environment.get('A')).toBe('b=c');
    const podman = {
      ...described,
      Name: 'web',
      Image: imageId,
      HostConfig: { NetworkMode: 'host', RestartPolicy: { Name: '' } },
      NetworkSettings: { Networks: null },
    };
    expect(inspectedContainer(podman)).toMatchObject({
      name: 'web',
      image: imageId,
      restart: 'no',
      networks: ['host'],
      memory: 0,
    });
    const image = { Id: `sha256:${imageId}`, RepoTags: null, RepoDigests: ['x@sha256:y'] };
    expect(inspectedImage(image)).toEqual({ id: imageId, names: ['x@sha256:y'], labels: {} });
    expect(inspectedImage({ ...image, Config: { Labels: { a: 'b' } } }).labels).toEqual({ a: 'b' });
    expect(inspectedImage({ ...image, Config: { Labels: null } }).labels).toEqual({});
  });

  test("refuses output in an unknown format, and recognizes the agent's containers only by a label with the container's name", () => {
    for (const value of [null, 1, [], {}, { ...described, Id: '-rf' }, { ...described, Config: { Env: [1] } }])
      expect(() => inspectedContainer(value)).toThrow('not understood');
    fc.assert(
      fc.property(fc.json(), (text) => {
        let config = '';
        try {
          const manifest = manifestOf(text, 'x');
          config = 'config' in manifest ? manifest.config : '';
        } catch (error) {
          expect((error as Error).message).toContain('not understood');
        }
        expect(config).toMatch(/^([0-9a-f]{64})?$/);
      }),
    );
    const copied = inspectedContainer({
      ...described,
      Config: { ...described.Config, Labels: { 'muster.container': 'db' } },
    });
    expect(seenContainer(declare(), copied)).toMatchObject({ isOurs: false, definition: null });
  });

  test('truncates engine output in messages, and removes control characters and hidden texts from it', () => {
    expect(messageOf('time="x" level=warning msg="y"\nError: one\x1b[31m two\n')).toBe('one [31m two');
    expect(messageOf('x'.repeat(5000)).length).toBe(800);
    expect(withoutHidden('invalid value secret-1 of secret', ['secret', 'secret-1', 'va'])).toBe(
      'invalid value … of …',
    );
    const secret = 'pass"word\x1b-1';
    expect(messageOf(`Error: refused ${'x'.repeat(780)} ${secret}`, [secret])).not.toContain('pass');
    expect(messageOf(`Error: refused ${secret} and ${JSON.stringify(secret)}`, [secret])).toBe('refused … and "…"');
  });

  test('returns the image of a manifest, or the members of a manifest list', () => {
    const digest = `sha256:${imageId}`;
    expect(manifestOf(JSON.stringify({ config: { digest } }), 'x')).toEqual({ config: imageId });
    expect(
      manifestOf(
        JSON.stringify({
          manifests: [{ digest, platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } }, null],
        }),
        'x',
      ),
    ).toEqual({
      members: [{ digest, os: 'linux', architecture: 'arm64', variant: 'v8' }],
    });
  });

  test('selects the image for the version of an ARM machine', () => {
    const member = (architecture: string, variant: string) => ({ digest: variant, os: 'linux', architecture, variant });
    const all = [member('arm64', 'v8'), member('arm', 'v5'), member('arm', 'v7'), member('arm', 'v6')];
    expect(memberFor(all, 'arm', 7)?.digest).toBe('v7');
    expect(memberFor(all, 'arm', 6)?.digest).toBe('v6');
    expect(memberFor([member('arm', 'v7'), member('arm', '')], 'arm', 6)?.digest).toBe('');
    expect(memberFor([member('arm', 'v7'), member('arm', 'else')], 'arm', 6)).toBeNull();
    expect(memberFor(all, 'arm64', 7)?.digest).toBe('v8');
    expect(memberFor(all, 'amd64', 7)).toBeNull();
  });

  test('treats an error as absence only if it names the queried object', () => {
    for (const [type, line] of [
      ['container', 'Error: no such container web'],
      ['container', 'Error: inspecting object: no such container web'],
      ['container', 'Error response from daemon: No such container: web'],
      ['image', 'Error: inspecting object: docker.io/library/nginx:1.27: image not known'],
      ['image', 'Error response from daemon: No such image: nginx:1.27'],
      [
        'network',
        'error inspecting object: network web: unable to find network with name or ID web: network not found',
      ],
      ['network', 'Error response from daemon: network web not found'],
      ['volume', 'Error response from daemon: get web: no such volume'],
      [
        'container',
        'Error: looking up container "web": more than one result for container id web: container already exists',
      ],
    ] as const)
      expect(isAbsence(line, type, ['other', type === 'image' ? image : 'web']), line).toBe(true);
    for (const [name, line] of [
      ['web', 'Error: default OCI runtime "crun" not found: invalid argument'],
      ['crun', 'Error: default OCI runtime "crun" not found: invalid argument'],
      ['web', 'Error: no such container web-2'],
      ['web', 'Error: no such image web'],
    ] as const)
      expect(isAbsence(line, 'container', [name]), line).toBe(false);
  });

  test('fails only the resource whose container description is invalid', () => {
    const found = containersByName([{ ...described, Name: '/db', State: null }, described]);
    expect(found.get('db')).toBeInstanceOf(HostFailure);
    expect(found.get('web')).toMatchObject({ name: 'web' });
    expect(() => containersByName([{}])).toThrow('not understood');
  });
});
