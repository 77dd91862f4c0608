import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sample } from '@muster/protocol';
import { latestSample, listSamples } from '@muster/protocol/http';
import { describe, expect, test as plainTest } from 'vitest';
import { root } from '../tools/cli.ts';
import { eventually } from './eventually.ts';
import { HostAgent } from './hosts/agent.ts';
import { ip } from './hosts/ip.ts';
import { machineName } from './hosts/leftovers.ts';
import { noHosts, test } from './hosts/test.ts';

const reason = noHosts();
const intervalSecs = 2;
/** What else this machine does meanwhile. Bytes. */
const noise = 512 * 1024 ** 2;

/** A program on the agent's own parts. It prints one line of JSON. */
const onParts = (body: string) => `
  import { readFile } from 'node:fs/promises';
  import { machineSource } from '${root}/agent/src/host/machine-source.ts';
  import { systemClock } from '${root}/agent/src/host/clock.ts';
  import { DiskReader } from '${root}/agent/src/metrics/disks.ts';
  import { fileSystems, parseMounts } from '${root}/agent/src/metrics/mounts.ts';
  const alive = setInterval(() => {}, 1e6);
  const paths = () => fileSystems(parseMounts(machineSource.text('/proc/self/mountinfo'))).map(({ path }) => path);
  ${body}
  // A thread that waits for a disk is one that no exit gets past.
  process.kill(process.pid, 'SIGKILL');`;

/** Runs shell text in a mount namespace of its own, which goes with it; \`$JS\` runs the program. */
function amongMounts(shell: string, body: string): Record<string, unknown> {
  const ran = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', shell], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: {
      PATH: process.env.PATH,
      NODE: process.execPath,
      BODY: onParts(body),
    },
  });
  if (ran.status !== 0) throw new Error(`${ran.stderr}${ran.stdout}`);
  return JSON.parse(ran.stdout) as Record<string, unknown>;
}
const program = '"$NODE" --input-type=module-typescript --eval "$BODY" || test $? = 137';

describe.skipIf(reason !== null)(`metrics${reason === null ? '' : ` (${reason})`}`, () => {
  test('of a machine are what its own tools say, and those taken while the link is down follow: in order, once, none missing', async ({
    hosts,
    stage,
  }) => {
    const config = JSON.stringify({ metrics: { collection_interval: intervalSecs } });
    const [machine, orchestrator] = await Promise.all([
      hosts.start('metrics', { files: { '/etc/muster/agent.yml': config } }),
      stage.orchestrator({ env: { MUSTER_METRICS_POLL_INTERVAL: '1' } }),
    ]);
    await HostAgent.install(machine, orchestrator, hosts.bridge.address, {
      flags: ['--config', '/etc/muster/agent.yml'],
    });
    const params = { node_id: 'metrics' };
    const latest = async () => (await orchestrator.call(latestSample, { params })) ?? null;
    const after = (second: number) =>
      eventually('there is a sample', async () => {
        const sample = await latest();
        return sample !== null && sample.collected_at > second ? sample : null;
      });

    const told = async () => {
      const [memory, swap, disk, traffic, uptime, processes, load] = (
        await machine.sh(`free -b | awk '/^Mem/ {print $2, $3}'; free -b | awk '/^Swap/ {print $3}'
          df -B1 --output=size,used ${'/muster'} | tail -1
          awk '/eth0:/ {print $2, $10}' /proc/net/dev; cat /proc/uptime; ls -d /proc/[0-9]* | wc -l; cat /proc/loadavg`)
      )
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number));
      return {
        memory: memory!,
        swap: swap!,
        disk: disk!,
        traffic: traffic!,
        uptime: uptime!,
        processes: processes!,
        load: load!,
      };
    };
    await after(0);
    const before = await told();
    const sample = await after(Math.floor(Date.now() / 1000));
    const then = await told();
    const between = (value: number | null, from: number, to: number, give: number) => {
      expect(value).toBeGreaterThanOrEqual(Math.min(from, to) - give);
      expect(value).toBeLessThanOrEqual(Math.max(from, to) + give);
    };
    expect(sample).toMatchObject({
      memory_total: before.memory[0],
      swap_used: before.swap[0],
      disk_total: before.disk[0],
    });
    between(sample.memory_used, before.memory[1]!, then.memory[1]!, noise);
    between(sample.disk_used, before.disk[1]!, then.disk[1]!, noise);
    between(sample.net_rx_bytes, before.traffic[0]!, then.traffic[0]!, 0);
    between(sample.net_tx_bytes, before.traffic[1]!, then.traffic[1]!, 0);
    between(sample.uptime, Math.floor(before.uptime[0]!), then.uptime[0]!, 0);
    between(sample.processes, before.processes[0]!, then.processes[0]!, 10);
    between(sample.load1, before.load[0]!, then.load[0]!, 3);

    // One processor works, whatever the others do, and what they do is told by the kernel meanwhile.
    const ticks: { at: number; idle: number; all: number }[] = [];
    const watching = setInterval(() => {
      const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/).slice(1, 9).map(Number);
      ticks.push({ at: Date.now() / 1000, idle: fields[3]! + fields[4]!, all: fields.reduce((sum, n) => sum + n, 0) });
    }, 50);
    const burner = machine.begin(['sh', '-c', 'while :; do :; done']);
    const cut = await after(Math.floor(Date.now() / 1000));
    const namespace = machineName('metrics');
    ip('-n', namespace, 'link', 'set', 'eth0', 'down');
    await machine.run(['ss', '-K', 'dport', '=', String(orchestrator.agentPort)]);
    await sleep(4 * intervalSecs * 1000);
    expect((await latest())?.collected_at).toBeLessThanOrEqual(cut.collected_at + intervalSecs);
    burner.kill('SIGKILL');
    const back = Math.floor(Date.now() / 1000);
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    await after(back + intervalSecs);
    clearInterval(watching);

    const listed = await orchestrator.call(listSamples, { params, query: { since: String(sample.collected_at) } });
    const times = listed!.samples.map(({ collected_at }) => collected_at);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    const [first, last] = [times[0]!, times.at(-1)!];
    expect(first).toBe(sample.collected_at);
    // Seconds are rounded, so half a sample is nothing; a whole one would be missing.
    expect(Math.abs(times.length - 1 - (last - first) / intervalSecs), times.join()).toBeLessThan(0.9);

    const during = listed!.samples.filter(({ collected_at: at }) => at > cut.collected_at && at < back);
    expect(during.length).toBeGreaterThanOrEqual(3);
    const near = (time: number) => ticks.reduce((a, b) => (Math.abs(b.at - time) < Math.abs(a.at - time) ? b : a));
    const [from, to] = [near(during[0]!.collected_at - intervalSecs + 0.5), near(during.at(-1)!.collected_at + 0.5)];
    const truth = 100 * (1 - (to.idle - from.idle) / (to.all - from.all));
    const mean = during.reduce((sum: number, { cpu_usage }: Sample) => sum + cpu_usage!, 0) / during.length;
    console.log(`cpu: samples ${mean.toFixed(1)} %, /proc/stat ${truth.toFixed(1)} %, ${during.length} samples`);
    expect(Math.abs(mean - truth)).toBeLessThan(10);
    expect(mean).toBeGreaterThan(100 / availableParallelism() - 10);
  });

  plainTest('count each disk once, whatever is mounted besides', () => {
    const mounts = `mount -t tmpfs none /mnt; cd /mnt; mkdir bind tmp low up work over far file; echo x > low/a
      mount --bind / bind; mount -t tmpfs -o size=1m none tmp
      mount -t overlay -o lowerdir=low,upperdir=up,workdir=work over over
      truncate -s 8M image; mkfs.ext4 -q image; mount -o loop image file
      exec 5<>/dev/fuse; mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 silent far`;
    const body =
      'console.log(JSON.stringify({ disks: await new DiskReader(machineSource, systemClock).read(), paths: paths() }));';
    const bare = amongMounts(program, body);
    const full = amongMounts(`${mounts}\n${program}`, body);
    expect((bare.paths as string[]).length).toBeGreaterThan(0);
    expect(full.paths).toEqual(bare.paths);
    const total = ({ disks }: Record<string, unknown>) => (disks as { total: number }).total;
    expect(total(full)).toBe(total(bare));
  });

  plainTest('of a disk that hangs are null within two seconds, ever after at once, and files can still be read', () => {
    const found = amongMounts(
      `mount -t tmpfs none /mnt; mkdir /mnt/far; exec 5<>/dev/fuse
      mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 silent /mnt/far\n${program}`,
      // A real file system that never answers, which says it were on a disk.
      `const source = { ...machineSource, text: () => '5 1 8:1 / /mnt/far rw - ext4 /dev/sda1 rw' };
      const reader = new DiskReader(source, systemClock);
      const first = await reader.read();
      const at = process.hrtime.bigint();
      const more = [];
      for (let times = 0; times < 20; times++) more.push(await reader.read());
      const texts = await Promise.all(Array.from({ length: 20 }, () => readFile('${join(root, 'package.json')}', 'utf8')));
      const ms = Number(process.hrtime.bigint() - at) / 1e6;
      console.log(JSON.stringify({ first, more, ms, read: texts.length, uptime: performance.now() }));`,
    );
    expect(found).toMatchObject({ first: null, read: 20 });
    expect(new Set(found.more as unknown[])).toEqual(new Set([null]));
    // Asking each time would have taken forty seconds.
    expect(found.ms).toBeLessThan(2_000);
  });
});
