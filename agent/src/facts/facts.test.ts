import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { fitAttributes } from '../connection/hello.ts';
import { architectureOf, builtInFacts, gatherFacts, initSystem, osRelease, timezone, virtualization } from './facts.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(`${tmpdir()}/muster-facts-`);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const writeFact = (path: string, text: string, mode = 0o644): void => {
  mkdirSync(`${root}${path.slice(0, path.lastIndexOf('/'))}`, { recursive: true });
  writeFileSync(root + path, text);
  chmodSync(root + path, mode);
};

test('reads os-release with quoted values, and from /usr/lib if /etc has none', () => {
  writeFact('/usr/lib/os-release', "NAME='x'\nID=fedora\nVERSION_ID=41\n");
  expect(osRelease(root)).toEqual({ distro: 'fedora', version: '41', like: [], codename: null });
  writeFact('/etc/os-release', 'ID=rocky\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\nVERSION_CODENAME=blue\n');
  expect(osRelease(root)).toEqual({
    distro: 'rocky',
    version: '9.4',
    like: ['rhel', 'centos', 'fedora'],
    codename: 'blue',
  });
  expect(builtInFacts(root)).toMatchObject({ family: 'redhat', major: '9', codename: 'blue', container: 'false' });
});

test('prefers the running init system to the installed one', () => {
  writeFact('/etc/init.d/x', '');
  expect(initSystem(root)).toBe('init.d');
  writeFact('/usr/lib/systemd/systemd', '');
  expect(initSystem(root)).toBe('systemd');
  writeFact('/run/openrc/softlevel', 'default');
  expect(initSystem(root)).toBe('openrc');
  mkdirSync(`${root}/run/systemd/system`, { recursive: true });
  expect(initSystem(root)).toBe('systemd');
});

test('maps architectures to the names that modules use', () => {
  expect(['x64', 'arm64', 'arm'].map(architectureOf)).toEqual(['x86_64', 'aarch64', 'armv7']);
});

test('detects virtualization and the time zone', () => {
  expect(virtualization(root)).toBe('none');
  writeFact('/sys/class/dmi/id/sys_vendor', 'QEMU\n');
  expect(virtualization(root)).toBe('qemu');
  writeFact('/sys/devices/system/clocksource/clocksource0/available_clocksource', 'kvm-clock tsc acpi_pm\n');
  expect(virtualization(root)).toBe('kvm');
  writeFact('/sys/class/dmi/id/sys_vendor', '');
  expect(virtualization(root)).toBe('none');
  writeFact('/proc/cpuinfo', 'flags\t\t: fpu hypervisor lahf_lm\n');
  expect(virtualization(root)).toBe('kvm');
  writeFact('/.dockerenv', '');
  expect(virtualization(root)).toBe('docker');
  expect(timezone(root)).toBe('UTC');
  mkdirSync(`${root}/etc`);
  symlinkSync('../usr/share/zoneinfo/Europe/Paris', `${root}/etc/localtime`);
  expect(timezone(root)).toBe('Europe/Paris');
});

test('returns a value for each built-in attribute by which modules choose variants', () => {
  const facts = builtInFacts('');
  for (const key of ['platform', 'distro', 'arch', 'init_system', 'hostname', 'kernel', 'cpus', 'memory_bytes'])
    expect(facts[key], key).toMatch(/./);
});

test('lets custom attributes replace built-in ones that version 0.1 did not report', async () => {
  writeFact('/facts.d/10-site.yaml', 'container: crate\nfqdn: web-1.example.com\n');
  const warned: string[] = [];
  const warn = (_file: string, problem: string) => warned.push(problem);
  const facts = await gatherFacts({ factsDir: `${root}/facts.d`, clock: systemClock, warn, root });
  expect(facts).toMatchObject({ container: 'crate', fqdn: 'web-1.example.com' });
  expect(warned).toEqual([]);
});

test('adds flattened attributes from facts.d, and skips only faulty files', async () => {
  writeFact('/facts.d/10-site.yaml', 'rack: { row: 4, unit: 12 }\nroles: [web, db]\nplatform: windows\n');
  writeFact('/facts.d/20-run', '#!/bin/sh\necho "serial: A1"\n', 0o755);
  writeFact('/facts.d/30-broken.yaml', 'a: [');
  writeFact('/facts.d/40-open.yaml', 'open: true\n', 0o666);
  writeFact('/facts.d/50-fails', '#!/bin/sh\nexit 3\n', 0o755);
  writeFact('/facts.d/60-proto.yaml', '__proto__: { polluted: yes }\n');
  writeFact('/facts.d/README', 'not a fact\n');
  const warned: string[] = [];
  const facts = await gatherFacts({
    factsDir: `${root}/facts.d`,
    clock: systemClock,
    warn: (file, problem) => warned.push(`${file.slice(root.length)} ${problem}`),
  });
  expect(facts).toMatchObject({ 'rack.row': '4', 'rack.unit': '12', 'roles.0': 'web', 'roles.1': 'db', serial: 'A1' });
  expect(facts.platform).toBe('linux');
  expect(facts.open).toBeUndefined();
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(warned.map((line) => line.split(' ')[0])).toEqual([
    '/facts.d/30-broken.yaml',
    '/facts.d/40-open.yaml',
    '/facts.d/50-fails',
    '/facts.d',
  ]);
});

test('ignores a facts directory that other users can write to', async () => {
  writeFact('/facts.d/10-site.yaml', 'rack: 4\n');
  writeFact('/facts.d/20-run', `#!/bin/sh\ntouch ${root}/ran\n`, 0o755);
  const warned: string[] = [];
  const gather = () =>
    gatherFacts({
      factsDir: `${root}/facts.d`,
      clock: systemClock,
      warn: (file, problem) => warned.push(`${file} ${problem}`),
    });
  for (const mode of [0o775, 0o1777]) {
    chmodSync(`${root}/facts.d`, mode);
    expect((await gather()).rack).toBeUndefined();
  }
  expect(existsSync(`${root}/ran`)).toBe(false);
  expect(warned).toEqual(Array(2).fill(expect.stringMatching(/facts\.d other users can write to it/)));
  chmodSync(`${root}/facts.d`, 0o755);
  expect((await gather()).rack).toBe('4');
});

test('truncates values that are too long', async () => {
  writeFact('/facts.d/a.yaml', `${Array.from({ length: 600 }, (_, i) => `k${i}: v`).join('\n')}\n`);
  writeFact('/facts.d/0.yaml', `long: ${'x'.repeat(5000)}\n`);
  const facts = await gatherFacts({ factsDir: `${root}/facts.d`, clock: systemClock, warn: () => {} });
  expect(Object.keys(facts).length).toBe(512);
  expect(facts.long?.length).toBe(1024);
});

test('keeps all built-in attributes, and warns about custom attributes that do not fit', async () => {
  const facts = (lines: string[]) => {
    writeFact('/facts.d/a.yaml', `${lines.join('\n')}\n`);
    const warned: string[] = [];
    const warn = (_file: string, problem: string) => warned.push(problem);
    return gatherFacts({ factsDir: `${root}/facts.d`, hostname: 'web-1', clock: systemClock, warn }).then(
      (gathered) => ({
        gathered,
        warned,
      }),
    );
  };
  // Uses as many facts of normal length as the limit allows, with names that sort before all built-in ones.
  const many = Array.from(
    { length: 480 },
    (_, i) => `a${String(i).padStart(14, '0')}: value_${String(i).padStart(9, '0')}`,
  );
  const ordinary = await facts(many);
  expect(ordinary.warned).toEqual([]);
  expect(Object.keys(fitAttributes(ordinary.gathered)).length).toBe(Object.keys(ordinary.gathered).length);

  const long = await facts(many.map((line) => line + 'x'.repeat(100)));
  const sent = fitAttributes(long.gathered);
  expect(sent).toMatchObject({ ...builtInFacts('', 'web-1'), hostname: 'web-1' });
  expect(sent).toEqual(long.gathered);
  const omitted = 480 + Object.keys(builtInFacts('', 'web-1')).length - Object.keys(sent).length;
  expect(omitted).toBeGreaterThan(0);
  expect(long.warned).toEqual([expect.stringMatching(new RegExp(`^${omitted} attributes were omitted.*24 KiB.*, …$`))]);
});
