import { beforeEach, expect, test, vi } from 'vitest';
import type { EngineRun } from '../../host/containers/engine.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider/provider.ts';
import { applyContainer, idOfRemains, removeContainer } from './change.ts';
import { type Declared, definitionLabel, ownerLabel } from './definition.ts';
import { type ContainerBefore, diffContainer } from './diff.ts';
import { look } from './seen.ts';

/**
 * An in-memory engine. The command determines how a container behaves: `exits`, `loops`, or, with any other command,
 * stays up.
 */
interface Held {
  id: string;
  name: string;
  labels: Record<string, string>;
  status: string;
  restarts: number;
  command: string;
}

const engine = vi.hoisted(() => ({
  containers: [] as Held[],
  volumes: [] as { Name: string; Labels: Record<string, string> }[],
  run: [] as string[],
  /** Called before each command, which it can refuse. */
  before: (_args: readonly string[]): void => {},
}));

const described = ({ id, name, labels, status, restarts }: Held) => ({
  Id: id,
  Name: name,
  Image: '1'.repeat(64),
  RestartCount: restarts,
  State: { Status: status, StartedAt: `start ${restarts}`, ExitCode: 3 },
  Config: { Image: 'localhost/app:1', Env: [], Labels: labels },
  HostConfig: { RestartPolicy: { Name: 'no' } },
});

function execute(args: readonly string[]): string {
  engine.run.push(args.slice(0, 3).join(' '));
  engine.before(args);
  const [command, ...rest] = args;
  const of = (id: string | undefined) => {
    const found = engine.containers.find((one) => one.id === id);
    if (found === undefined) throw new HostFailure(`no such container ${id}`);
    return found;
  };
  if (command === 'create') {
    const option = (name: string) => rest.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3) ?? '';
    const name = option('name');
    if (engine.containers.some((one) => one.name === name)) throw new HostFailure(`the name ${name} is already in use`);
    const labels = {
      [ownerLabel]: option(`label=${ownerLabel}`),
      [definitionLabel]: option(`label=${definitionLabel}`),
    };
    const id = `${engine.containers.length + 1}`.repeat(64).slice(0, 64);
    engine.containers.push({ id, name, labels, status: 'created', restarts: 0, command: rest.at(-1) ?? '' });
  } else if (command === 'rm') engine.containers.splice(engine.containers.indexOf(of(rest.at(-1))), 1);
  else if (command === 'rename') {
    const [id, name = ''] = rest;
    if (engine.containers.some((one) => one.name === name)) throw new HostFailure(`the name ${name} is already in use`);
    of(id).name = name;
  } else if (command === 'stop') of(rest[0]).status = 'exited';
  else if (command === 'start') {
    const found = of(rest[0]);
    found.status = found.command === 'exits' ? 'exited' : 'running';
  } else if (command === 'volume') {
    const [action, label = '', name = label] = rest;
    if (action === 'create') {
      if (engine.volumes.some(({ Name }) => Name === name)) throw new HostFailure(`volume ${name} already exists`);
      engine.volumes.push({ Name: name, Labels: { [ownerLabel]: label.split('=').at(-1) ?? '' } });
    } else engine.volumes = engine.volumes.filter(({ Name }) => Name !== name);
  } else if (command !== 'ps') throw new Error(`the engine in memory does not know ${command}`);
  return '';
}

vi.mock('../../host/containers/engine.ts', async (original) => ({
  ...(await original<typeof import('../../host/containers/engine.ts')>()),
  missingEngine: () => null,
  runEngine: async (_engine: string, { args }: EngineRun) => execute(args),
  inspectObjects: async (_engine: string, type: string, names: readonly string[]) => {
    if (type === 'image') return [{ Id: '1'.repeat(64), RepoTags: ['localhost/app:1'] }];
    if (type === 'volume') return engine.volumes.filter(({ Name }) => names.includes(Name));
    return engine.containers.filter(({ id, name }) => names.includes(name) || names.includes(id)).map(described);
  },
}));

const declare = (command: string): Declared =>
  ({ type: 'container', body: { name: 'web', image: 'localhost/app:1', command: [command] } }) as Declared;

const machineFor = (resource: Declared): Machine =>
  ({
    limits: { scriptMs: 1000, packageMs: 1000 },
    environment: {},
    warn: () => {},
    stale: () => {},
    resourcesOf: () => [resource],
    database: (database: { read(machine: Machine): unknown }) => database.read(machineFor(resource)),
    clock: {
      after(_ms: number, act: () => void) {
        for (const one of engine.containers) if (one.command === 'loops' && one.status === 'running') one.restarts += 1;
        act();
      },
    },
  }) as unknown as Machine;

async function apply(resource: Declared): Promise<void> {
  const machine = machineFor(resource);
  const seen = await look(resource, machine, 'apply');
  const difference = diffContainer(resource, seen, { purpose: 'apply', restartBy: [] });
  await applyContainer(resource, seen, difference, machine);
}

const listed = () => engine.containers.map(({ name, status, command }) => `${name} ${status} ${command}`).sort();
const add = (name: string, status: string, command: string, labels: Held['labels'] = {}) =>
  engine.containers.push({
    ...{ id: `${'abcdef'[engine.containers.length]}`.repeat(64), name, status, command, restarts: 0 },
    labels,
  });
const own = { [ownerLabel]: 'web' };

beforeEach(() => {
  engine.containers = [];
  engine.volumes = [];
  engine.run = [];
  engine.before = () => {};
});

test('replaces a container, and leaves no other containers behind', async () => {
  await apply(declare('one'));
  await apply(declare('two'));
  expect(listed()).toEqual(['web running two']);
});

test('never removes a container that the agent did not create, even if the next container needs the same name', async () => {
  await apply(declare('one'));
  add('web-muster-new', 'running', 'others');
  await expect(apply(declare('two'))).rejects.toThrow('web-muster-new');
  expect(engine.run).not.toContainEqual(expect.stringMatching(/rm --force/));
  engine.containers.pop();
  engine.before = ([command]) => {
    // Another program creates it after the agent's observation.
    if (command === 'create') add('web-muster-new', 'running', 'others');
  };
  await expect(apply(declare('two'))).rejects.toThrow('already in use');
  expect(listed()).toEqual(['web running one', 'web-muster-new running others']);
});

test.each(['stop', 'rename'])('restarts the current container if %s fails', async (refused) => {
  await apply(declare('one'));
  let times = 0;
  engine.before = ([command]) => {
    if (command !== refused || times++ > 0) return;
    // The engine stopped the container after the agent had stopped waiting.
    for (const one of engine.containers) if (one.command === 'one') one.status = 'exited';
    throw new HostFailure(`${refused} took longer than 1 s`);
  };
  await expect(apply(declare('two'))).rejects.toThrow('took longer');
  expect(listed()).toEqual(['web running one']);
});

test.each([
  ['exits', 'it exited immediately with 3'],
  ['loops', 'is restarted repeatedly'],
])('restores the previous container if the next container %s', async (command, message) => {
  await apply(declare('one'));
  await expect(apply(declare(command))).rejects.toThrow(message);
  expect(listed()).toEqual(['web running one']);
});

test('restores the previous container if the agent was killed before it had started the current one', async () => {
  const resource = declare('exits');
  add('web', 'created', 'exits', {
    ...own,
    [definitionLabel]: JSON.stringify({ image: 'localhost/app:1', command: ['exits'] }),
  });
  add('web-muster-old', 'exited', 'one', own);
  await expect(apply(resource)).rejects.toThrow('exited immediately');
  expect(listed()).toEqual(['web running one']);
});

test('restores the previous container if the agent was killed during a replacement and the next replacement fails', async () => {
  add('web', 'created', 'exits', own);
  add('web-muster-old', 'exited', 'one', own);
  await expect(apply(declare('loops'))).rejects.toThrow('repeatedly');
  expect(listed()).toEqual(['web running one']);
  await apply(declare('two'));
  expect(listed()).toEqual(['web running two']);
});

test('restarts a container that a killed agent stopped, if the next container fails', async () => {
  add('web', 'exited', 'one', own);
  add('web-muster-new', 'created', 'two', own);
  await expect(apply(declare('exits'))).rejects.toThrow('exited immediately');
  expect(listed()).toEqual(['web running one']);
});

test('restores, on removal, only the container that the agent displaced', async () => {
  add('web', 'running', 'one', own);
  add('web-muster-before', 'exited', 'others');
  const resource = declare('one');
  const machine = machineFor(resource);
  const before = (id: string): ContainerBefore => ({
    was: { id, running: true, restart: 'no' },
    images: [],
    volumes: [],
  });
  await removeContainer(resource, before('f'.repeat(64)), await look(resource, machine, 'removal'), machine);
  expect(listed()).toEqual(['web-muster-before exited others']);
  await removeContainer(resource, before('b'.repeat(64)), await look(resource, machine, 'removal'), machine);
  expect(listed()).toEqual(['web running others']);
});

test('removes only the volumes that the agent created, even if another program created one in the meantime', async () => {
  const resource = declare('one');
  Object.assign(resource.body, { volumes: ['made:/a', 'raced:/b', 'own:/c'], remove_volumes: true });
  engine.volumes = [{ Name: 'own', Labels: {} }];
  engine.before = ([command, action]) => {
    if (command === 'volume' && action === 'create' && engine.volumes.length === 1)
      engine.volumes.push({ Name: 'raced', Labels: {} });
  };
  await apply(resource);
  expect(engine.volumes.map(({ Name }) => Name)).toEqual(['own', 'raced', 'made']);
  const machine = machineFor(resource);
  const before: ContainerBefore = { was: 'absent', images: [], volumes: ['made', 'raced'] };
  await removeContainer(resource, before, await look(resource, machine, 'removal'), machine);
  expect(engine.volumes.map(({ Name }) => Name)).toEqual(['own', 'raced']);
});

test('finds leftover storage only if Podman created it, and only under the exact name', () => {
  const id = 'a'.repeat(64);
  const listing = `${'b'.repeat(64)} buildah web-muster-new\n${'c'.repeat(64)} sh web-muster-new\n${id} storage web-muster-new\n`;
  expect(idOfRemains(listing, 'web-muster-new')).toBe(id);
  expect(idOfRemains(listing, 'muster-new')).toBeNull();
  expect(idOfRemains(`${'b'.repeat(64)} buildah web-muster-new\n`, 'web-muster-new')).toBeNull();
  expect(idOfRemains('', 'web-muster-new')).toBeNull();
});
