import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { madeCertificate } from '../../agent/src/converge/test/made-certificates.ts';
import { sampled } from '../../lib/test/sampled.ts';
import { root } from '../../tools/suite/cli.ts';
import { Stage } from '../harness.ts';
import { reaches } from './network.ts';
import { password, sshKey } from './recipes.ts';
import { changesOf, SiteHost, type Values } from './sites/site-host.ts';
import { noHosts } from './test.ts';

/** Applies the sites in `examples/sites` to bare machines, uses and changes them, and removes them. */

const reason = noHosts();
/** `npm test` applies one site, selected at random; `npm run soak -- kill-steps` applies all. */
const sites = sampled(['web-application', 'single-binary'] as const, 1);
const why = reason === null ? '' : ` (${reason})`;
const describeSite = (site: (typeof sites)[number], define: () => void) => {
  if (sites.includes(site)) describe.skipIf(reason !== null)(`examples/sites/${site}${why}`, define);
};

describeSite('web-application', () => {
  const stage = new Stage();
  const domain = 'notes.example.org';
  const key = sshKey();
  let host: SiteHost;
  let authority: string;
  let values: Values;

  /** Makes a release of the application available for download. @returns the value of the parameter `release` */
  const release = (version: string, more = ''): { version: string; sha256: string } => {
    const folder = stage.folder(`notes-${version}`);
    cpSync(join(root, 'examples/sites/web-application/application'), folder, { recursive: true });
    writeFileSync(join(folder, 'VERSION'), `${version}\n`);
    writeFileSync(join(folder, 'notes.py'), more, { flag: 'a' });
    const archive = execFileSync('tar', ['-C', stage.dir, '-czf', '-', `notes-${version}`]);
    return { version, sha256: host.downloads.offer(`notes-${version}.tar.gz`, archive) };
  };

  /** Sends a request to the site over TLS, and checks the site's certificate. */
  const ask = (method: 'GET' | 'POST', body = ''): Promise<{ status: number | undefined; text: string }> =>
    new Promise((resolve, reject) => {
      const to = { host: host.machine.address, servername: domain, ca: authority, method, headers: { host: domain } };
      const sent = request(to, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(pieces).toString() }));
      });
      sent.on('error', reject);
      sent.end(body);
    });

  beforeAll(async () => {
    host = await SiteHost.open(stage, 'web-application');
    const issuer = await madeCertificate('Authority', null, null);
    const certificate = await madeCertificate(domain, issuer, [domain]);
    authority = issuer.pem;
    await host.store('notes_certificate', certificate.pem);
    await host.store('notes_certificate_key', certificate.key);
    await host.store('notes_database_password', password);
    values = {
      server: { operators: { ada: { keys: [key.line] } } },
      notes: { downloads: host.downloads.url, release: release('1.0.0') },
      'notes-web': { domain },
      'notes-backup': { keep: 3 },
    };
    await host.assign(values);
    writeFileSync(join(host.machine.rootPath, 'run/ada'), key.privateKey, { mode: 0o600 });
  });

  afterAll(async () => {
    await host?.end();
    await stage.end();
  });

  const report = () => onTestFailed(async () => console.error(await host.report()));

  test('a site on a bare machine serves data from PostgreSQL over TLS', async () => {
    report();
    await host.listen(8081);
    expect(await reaches(host.machine.address, 8081)).toBe(true);
    expect(await host.apply()).toMatchObject({ status: 'succeeded', error: null });
    expect(await ask('POST', 'text=buy+%3Cmilk%3E')).toMatchObject({ status: 303 });
    expect(await ask('GET')).toMatchObject({ status: 200, text: expect.stringContaining('<li>buy &lt;milk&gt;</li>') });
    const sql = "runuser -u postgres -- psql -XAtq notes -c 'SELECT text FROM notes'";
    expect(await host.machine.sh(`cd /; ${sql}`)).toBe('buy <milk>\n');
    const redirect = await fetch(`http://${host.machine.address}/a`, { redirect: 'manual' });
    expect([redirect.status, redirect.headers.get('location')]).toEqual([301, `https://${domain}/a`]);

    const ports = [22, 80, 443, 5432, 8000, 8081];
    const open = await Promise.all(ports.map((port) => reaches(host.machine.address, port)));
    expect(open).toEqual([true, true, true, false, false, false]);
    await host.machine.sh('systemctl is-active listener-8081; systemctl stop listener-8081');
    const ssh = 'ssh -i /run/ada -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR';
    expect(await host.machine.sh(`${ssh} ada@127.0.0.1 'ulimit -n; sudo -n id -u'`)).toBe('4096\n0\n');
    expect(await host.machine.sh('sshd -T | grep -E "^(passwordauthentication|permitrootlogin) "')).toBe(
      'permitrootlogin no\npasswordauthentication no\n',
    );
    expect(await host.machine.sh('ls /pwned 2> /dev/null || true; systemctl --failed --no-legend')).toBe('');
    const { now, before } = await host.states();
    expect(now).not.toBe(before);
    expect((await host.machine.run(['runuser', '-u', 'ada', '--', 'cat', '/etc/notes/database-password'])).code).toBe(
      1,
    );
  });

  test('a second apply of a site changes nothing, and the backup keeps the newest dumps', async () => {
    report();
    expect(changesOf(await host.apply())).toEqual({});
    expect(await host.drift()).toMatchObject({ status: 'in_sync' });
    await host.machine.sh('cd /var/backups/notes; for d in 1 2 3 4; do : > 2026-01-0${d}T023000Z.dump; done');
    await host.machine.sh('systemctl start notes-backup');
    const dumps = (await host.machine.sh('ls /var/backups/notes')).trim().split('\n');
    expect(dumps.slice(0, 2)).toEqual(['2026-01-03T023000Z.dump', '2026-01-04T023000Z.dump']);
    expect(dumps).toHaveLength(3);
    expect(await host.machine.sh(`pg_restore --file=- /var/backups/notes/${dumps[2]}`)).toContain('buy <milk>');
    const asked = 'DATABASE=missing KEEP=3 FOLDER=/var/backups/notes /usr/local/sbin/notes-backup';
    expect((await host.machine.run(['sh', '-c', `cd /; runuser -u postgres -- env ${asked}`])).code).toBe(1);
    expect((await host.machine.sh('ls /var/backups/notes')).trim().split('\n')).toEqual(dumps);
    expect(await host.machine.sh('systemctl list-timers --no-legend notes-backup.timer')).toContain(
      'notes-backup.service',
    );
  });

  test('a site serves a new release with a changed value, but not a release that does not respond', async () => {
    report();
    const first = values.notes ?? {};
    values = { ...values, notes: { ...first, title: 'To do', release: release('1.1.0') } };
    await host.change(values);
    expect(changesOf(await host.apply())).toEqual({
      'notes:settings': 'update',
      'notes:release': 'update',
      'notes:service': 'restart',
    });
    expect((await ask('GET')).text).toMatch(/<h1>To do<\/h1>.*buy &lt;milk&gt;.*<p>1\.1\.0<\/p>/);

    await host.change({
      ...values,
      notes: { ...values.notes, release: release('1.2.0', 'raise RuntimeError("broken")\n') },
    });
    const failed = await host.apply();
    expect(failed).toMatchObject({ status: 'failed' });
    const { message } = failed.resources.find(({ module, id }) => module === 'notes' && id === 'release') ?? {};
    expect(message).toMatch(/`service` could not follow: .*former state is restored, and `service` followed/s);
    expect((await ask('GET')).text).toContain('<p>1.1.0</p>');
    expect(await host.machine.sh('ls /opt/notes/releases | wc -l')).toBe('2\n');
  });

  test('the removal of a site leaves only the backups', async () => {
    report();
    await host.change({ ...values, database: { drop_data: true } });
    // The failed release left a restart due.
    expect(changesOf(await host.apply())).toEqual({ 'notes:service': 'restart' });
    expect(await host.remove()).toMatchObject({ status: 'succeeded', error: null });
    const traces = host.traces();
    expect(traces.filter((path) => !path.startsWith('/var/backups/notes'))).toEqual([]);
    expect(traces).toHaveLength(4);
    const { now, before } = await host.states();
    expect(now).toBe(before);
    expect(await host.machine.sh('getent passwd ada notes || true; nft list tables 2> /dev/null || true')).toBe('');
  });
});

/** A service that consists of one file. It appends a line to `starts` in its data directory whenever it starts. */
const beacon = (version: string): Buffer =>
  Buffer.from(`#!/usr/bin/perl
use strict;
use IO::Socket::INET;
my %config;
open(my $file, '<', $ARGV[2]) or die;
while (<$file>) { $config{$1} = $2 if /^(\\w+): "?(.*?)"?$/ }
open(my $starts, '>>', "$config{data}/starts") or die;
print $starts "${version}\\n";
close($starts);
my $server = IO::Socket::INET->new(LocalAddr => $config{listen}, LocalPort => $config{port}, Listen => 16, ReuseAddr => 1) or die;
$SIG{PIPE} = 'IGNORE';
while (my $client = $server->accept) {
  my $request = <$client>;
  print $client "HTTP/1.0 200 OK\\r\\n\\r\\n$config{greeting} from ${version}";
}
`);

describeSite('single-binary', () => {
  const stage = new Stage();
  let host: SiteHost;
  let values: { beacon: { version: string; clients: string[] } & Values[string] };

  beforeAll(async () => {
    host = await SiteHost.open(stage, 'single-binary');
    const { url } = host.downloads;
    const releases = Object.fromEntries(
      ['1.0.0', '1.1.0'].map((version) => [version, host.downloads.offer(`beacon-${version}`, beacon(version))]),
    );
    releases['1.2.0'] = host.downloads.offer('beacon-1.2.0', Buffer.from('#!/bin/sh\nexit 1\n'));
    const clients = [`${url.split(/[/:]+/)[1]}/32`];
    values = { beacon: { downloads: url, version: '1.0.0', releases, clients, greeting: 'say "hi"' } };
    await host.assign(values);
  });

  afterAll(async () => {
    await host?.end();
    await stage.end();
  });

  const report = () => onTestFailed(async () => console.error(await host.report()));
  const answer = async () => await (await fetch(`http://${host.machine.address}:7070/`)).text();
  const choose = async (version: string) => {
    await host.change({ beacon: { ...values.beacon, version } });
    return await host.apply();
  };

  test('a single-binary site serves on a bare machine, and a second apply changes nothing', async () => {
    report();
    expect(await host.apply()).toMatchObject({ status: 'succeeded', error: null });
    expect(await answer()).toBe('say \\"hi\\" from 1.0.0');
    expect(await host.machine.sh('cat /proc/sys/net/ipv4/ip_forward; systemctl is-enabled beacon')).toBe(
      '1\nenabled\n',
    );
    expect(changesOf(await host.apply())).toEqual({});
    expect(await host.drift()).toMatchObject({ status: 'in_sync' });
  });

  test('a site refuses machines from networks that are not listed', async () => {
    report();
    const { clients } = values.beacon;
    for (const [networks, isOpen] of [
      [['192.0.2.0/24'], false],
      [clients, true],
    ] as const) {
      await host.change({ beacon: { ...values.beacon, clients: [...networks] } });
      expect(changesOf(await host.apply())).toEqual({ 'beacon:clients': 'update' });
      expect(await reaches(host.machine.address, 7070)).toBe(isOpen);
    }
  });

  test('a site is upgraded and downgraded, and the previous version is restored if a new version does not start', async () => {
    report();
    const changes = { 'beacon:program': 'update', 'beacon:service': 'restart' };
    expect(changesOf(await choose('1.1.0'))).toEqual(changes);
    expect(await answer()).toContain('from 1.1.0');
    const { status, resources } = await choose('1.2.0');
    expect(status).toBe('failed');
    expect(resources.find(({ id }) => id === 'program')?.message).toMatch(
      /`service` could not follow: .*former state is restored, and `service` followed/s,
    );
    expect(await answer()).toContain('from 1.1.0');
    expect(await choose('1.0.0')).toMatchObject({ status: 'succeeded', error: null });
    expect(await answer()).toContain('from 1.0.0');
    // systemd may start the restored program by itself before the agent restarts it.
    expect(await host.machine.sh('uniq /var/lib/beacon/starts')).toBe('1.0.0\n1.1.0\n1.0.0\n');
  });

  test('the removal of a site leaves only the data of the program', async () => {
    report();
    expect(await host.remove()).toMatchObject({ status: 'succeeded', error: null });
    expect(host.traces()).toEqual(['/var/lib/beacon', '/var/lib/beacon/starts']);
    const { now, before } = await host.states();
    expect(now).toBe(before);
    expect(await host.machine.sh('getent passwd beacon || true')).toBe('');
  });
});
