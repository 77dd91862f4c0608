import { spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Sample } from '@muster/protocol';
import { latestSample, listSamples } from '@muster/protocol/http';
import { describe, expect, onTestFinished, test as plainTest } from 'vitest';
import { root } from '../tools/suite/cli.ts';
import { eventually } from './eventually.ts';
import { HostAgent } from './hosts/agent.ts';
import { ip } from './hosts/ip.ts';
import { machineName } from './hosts/leftovers.ts';
import { repositoryInside } from './hosts/machine.ts';
import { noHosts, test } from './hosts/test.ts';

const reason = noHosts();
const intervalSecs = 1;
/** Tolerance in bytes for other activity on this machine between two measurements. */
const noise = 128 * 1024 ** 2;

/** Measurements at one point in time on this machine, which shares its kernel with the test hosts. */
interface Look {
  at: number;
  idle: number;
  all: number;
  memory: number;
  disk: number;
  load: number;
}

function look(): Look {
  const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/).slice(1, 9).map(Number);
  const kib = (name: string) =>
    Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(readFileSync('/proc/meminfo', 'utf8'))![1]);
  const { bsize, blocks, bfree } = statfsSync(root);
  return {
    at: Date.now(),
    idle: ticks[3]! + ticks[4]!,
    all: ticks.reduce((sum, n) => sum + n, 0),
    memory: (kib('MemTotal') - kib('MemAvailable')) * 1024,
    disk: (blocks - bfree) * bsize,
    load: Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]),
  };
}

/** Returns a program that uses parts of the agent's code. `body` must print one line of JSON. */
const onParts = (body: string) => `
  import { readFile } from 'node:fs/promises';
  import { machineSource } from '${root}/agent/src/host/machine-source.ts';
  import { systemClock } from '${root}/lib/src/clock.ts';
  import { DiskReader } from '${root}/agent/src/metrics/disks.ts';
  import { fileSystems, parseMounts } from '${root}/agent/src/metrics/mounts.ts';
  const alive = setInterval(() => {}, 1e6);
  const paths = () => fileSystems(parseMounts(machineSource.text('/proc/self/mountinfo'))).map(({ path }) => path);
  ${body}
  // Uses SIGKILL, because a process with a thread that waits for a disk cannot exit normally.
  process.kill(process.pid, 'SIGKILL');`;

const send = (socket: Socket, address: string) =>
  new Promise<void>((resolve) => socket.send(Buffer.alloc(1_000), 9, address, () => resolve()));

/** Shell text that mounts, at /mnt/far, a file system that never responds to requests. */
const silentFar = `mount -t tmpfs none /mnt; mkdir /mnt/far; exec 5<>/dev/fuse
  mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 silent /mnt/far`;

/** Runs shell text in a private mount namespace, with a program in `$BODY`. @returns the JSON that it prints */
function amongMounts(shell: string, body: string): Record<string, unknown> {
  // The private PID namespace ensures that a timeout also kills hanging processes.
  const alone = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const ran = spawnSync('unshare', [...alone, 'sh', '-euc', shell], {
    encoding: 'utf8',
    timeout: 300_000,
    killSignal: 'SIGKILL',
    env: {
      PATH: process.env.PATH,
      NODE: process.execPath,
      BODY: body,
    },
  });
  if (ran.status !== 0) throw new Error(`${ran.stderr}${ran.stdout}`);
  return JSON.parse(ran.stdout) as Record<string, unknown>;
}
const program = '"$NODE" --input-type=module-typescript --eval "$BODY" || test $? = 137';

describe.skipIf(reason !== null)(`metrics${reason === null ? '' : ` (${reason})`}`, () => {
  test('samples agree with the machine’s tools, and arrive once and in order even if the link is lost and the agent is stopped and killed', async ({
    hosts,
    stage,
  }) => {
    const looks: Look[] = [];
    const looking = setInterval(() => looks.push(look()), 25);
    onTestFinished(() => clearInterval(looking));
    const config = JSON.stringify({ metrics: { collection_interval: intervalSecs } });
    const [machine, orchestrator] = await Promise.all([
      hosts.start('metrics', { files: { '/etc/muster/agent.yml': config } }),
      stage.orchestrator({ env: { MUSTER_METRICS_POLL_INTERVAL: '1' } }),
    ]);
    const agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address, {
      flags: ['--config', '/etc/muster/agent.yml', '--log-level', 'debug'],
    });
    const params = { node_id: 'metrics' };
    const latest = async () => (await orchestrator.call(latestSample, { params })) ?? null;
    const after = (second: number) =>
      eventually('the orchestrator has a newer sample', async () => {
        const sample = await latest();
        return sample !== null && sample.collected_at > second ? sample : null;
      });
    /**
     * Returns, for each sample in the agent's log, the time of the sample, the time of the log line, and the index of
     * the agent's start.
     */
    const taken = async (): Promise<{ collected_at: number; at: number; start: number }[]> => {
      const runs = (await agent.log(2_000)).split(/^.*"agent started".*$/m);
      return runs.flatMap((run, start) =>
        run
          .split('\n')
          .filter((line) => line.includes('collected a metrics sample'))
          .map((line) => JSON.parse(line) as { collected_at: number; time: string })
          .map(({ collected_at, time }) => ({ collected_at, at: Date.parse(time), start })),
      );
    };

    const readFigures = async () => {
      const [memory, swap, disk, traffic, uptime, processes] = (
        await machine.sh(`free -b | awk '/^Mem/ {print $2, $3}'; free -b | awk '/^Swap/ {print $3}'
          df -B1 --output=size,used ${repositoryInside} | tail -1
          awk '/eth0:/ {print $2, $10}' /proc/net/dev; cat /proc/uptime; ls -d /proc/[0-9]* | wc -l`)
      )
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number));
      looks.push(look());
      return {
        memory: memory!,
        swap: swap!,
        disk: disk!,
        traffic: traffic!,
        uptime: uptime!,
        processes: processes!,
      };
    };
    await after(0);
    // Causes different amounts of received, sent, and loopback traffic.
    await machine.exec('bash', '-c', 'for n in {1..300}; do printf %01000d $n > /dev/udp/127.0.0.1/9; done');
    const socket = createSocket('udp4');
    for (let n = 0; n < 1_000; n++) await send(socket, machine.address);
    socket.close();
    const beganAt = Date.now();
    const before = await readFigures();
    const sample = await after(Math.floor(Date.now() / 1000));
    const then = await readFigures();
    const between = (value: number | null, values: number[], give: number) => {
      expect(value).toBeGreaterThanOrEqual(Math.min(...values) - give);
      expect(value).toBeLessThanOrEqual(Math.max(...values) + give);
    };
    const meanwhile = looks.filter(({ at }) => at >= beganAt);
    expect(sample).toMatchObject({ memory_total: before.memory[0], disk_total: before.disk[0] });
    between(sample.swap_used, [before.swap[0]!, then.swap[0]!], noise);
    between(sample.memory_used, [before.memory[1]!, then.memory[1]!, ...meanwhile.map(({ memory }) => memory)], noise);
    between(sample.disk_used, [before.disk[1]!, then.disk[1]!, ...meanwhile.map(({ disk }) => disk)], noise);
    between(sample.net_rx_bytes, [before.traffic[0]!, then.traffic[0]!], 0);
    between(sample.net_tx_bytes, [before.traffic[1]!, then.traffic[1]!], 0);
    between(sample.uptime, [Math.floor(before.uptime[0]!), then.uptime[0]!], 0);
    // The tolerance covers the processes that take the measurements.
    between(sample.processes, [before.processes[0]!, then.processes[0]!], 10);
    between(
      sample.load1,
      meanwhile.map(({ load }) => load),
      0,
    );

    // Keeps one processor busy, so that the CPU usage has a known minimum.
    const burner = machine.begin(['sh', '-c', 'while :; do :; done']);
    await after(Math.floor(Date.now() / 1000));
    const namespace = machineName('metrics');
    ip('-n', namespace, 'link', 'set', 'eth0', 'down');
    await machine.run(['ss', '-K', 'dport', '=', String(orchestrator.agentPort)]);
    const cut = (await latest())!;
    const during = await eventually('the agent has taken several samples without a link', async () => {
      const later = (await taken()).filter(({ collected_at }) => collected_at > cut.collected_at + intervalSecs);
      return later.length > 3 ? later : null;
    });
    expect((await latest())?.collected_at).toBeLessThanOrEqual(cut.collected_at + intervalSecs);
    burner.kill('SIGKILL');

    const takenAfter = (starts: number) =>
      eventually(`the agent has taken samples after ${starts} starts`, async () => {
        const later = (await taken()).filter(({ start }) => start === starts);
        return later.length > 0 ? later : null;
      });
    const file = '/var/lib/muster-agent/unsent-samples.log';
    const onDisk = async () => (await machine.run(['stat', '--format', '%A', file])).stdout.trim();
    expect(await onDisk()).toBe('');
    await agent.stop();
    expect(await onDisk()).toBe('-rw-------');
    await agent.start();
    // Killing the agent loses only the samples in memory, which are at most ten minutes old.
    await takenAfter(2);
    await agent.kill9();
    const afterKill = await takenAfter(3);
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    const last = await after(afterKill.at(-1)!.collected_at);
    await eventually('the agent has deleted the file of unsent samples', async () =>
      (await onDisk()) === '' ? true : null,
    );

    const query = { since: String(sample.collected_at) };
    const listed = (await orchestrator.call(listSamples, { params, query }))!.samples;
    const stored = listed.filter(({ collected_at }) => collected_at <= last.collected_at);
    const logged = await eventually("the agent's log contains the last sample", async () => {
      const all = (await taken()).filter(({ start }) => start !== 2).map(({ collected_at }) => collected_at);
      return all.includes(last.collected_at) ? all : null;
    });
    expect(stored.map(({ collected_at }) => collected_at)).toEqual(
      logged.filter((at) => at >= sample.collected_at && at <= last.collected_at),
    );

    const near = (time: number) => looks.reduce((a, b) => (Math.abs(b.at - time) < Math.abs(a.at - time) ? b : a));
    const [from, to] = [near(during[0]!.at), near(during.at(-1)!.at)];
    const truth = 100 * (1 - (to.idle - from.idle) / (to.all - from.all));
    const usages = during.slice(1).map(({ collected_at }) => stored.find((of) => of.collected_at === collected_at)!);
    const mean = usages.reduce((sum: number, { cpu_usage }: Sample) => sum + cpu_usage!, 0) / usages.length;
    console.log(`cpu: samples ${mean.toFixed(1)} %, /proc/stat ${truth.toFixed(1)} %, ${usages.length} samples`);
    expect(Math.abs(mean - truth)).toBeLessThan(10);
    expect(mean).toBeGreaterThan(100 / availableParallelism() - 10);
  });

  plainTest('samples count each disk once, whatever else is mounted', () => {
    const mounts = `mount -t tmpfs none /mnt; cd /mnt; mkdir bind tmp low up work over far file; echo x > low/a
      mount --bind / bind; mount -t tmpfs -o size=1m none tmp
      mount -t overlay -o lowerdir=low,upperdir=up,workdir=work over over
      truncate -s 8M image; mkfs.ext4 -q image; mount -o loop image file
      exec 5<>/dev/fuse; mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 silent far`;
    const body =
      'console.log(JSON.stringify({ disks: await new DiskReader(machineSource, systemClock).read(), paths: paths() }));';
    const withoutMounts = amongMounts(program, onParts(body));
    const full = amongMounts(`${mounts}\n${program}`, onParts(body));
    expect((withoutMounts.paths as string[]).length).toBeGreaterThan(0);
    expect(full.paths).toEqual(withoutMounts.paths);
    const total = ({ disks }: Record<string, unknown>) => (disks as { total: number }).total;
    expect(total(full)).toBe(total(withoutMounts));
  });

  plainTest('samples include a disk whose mount point has special characters', () => {
    const found = amongMounts(
      `mount -t tmpfs none /mnt; at="/mnt/at$(printf '\\374 \\t\\134\\n#')é"; mkdir "$at"
      mount -t tmpfs -o size=1m none "$at"; ${program}`,
      // Makes the tmpfs look like a file system on a disk.
      onParts(`const source = { ...machineSource, text: (...of) => machineSource.text(...of).split('\\n')
        .filter((line) => line.includes(' /mnt/at')).map((line) => line.replace(/ 0:\\d+ /, ' 8:1 ').replace(' - tmpfs ', ' - ext4 ')).join('\\n') };
      console.log(JSON.stringify(await new DiskReader(source, systemClock).read()));`),
    );
    expect(found).toEqual({ total: 1024 ** 2, used: 0 });
  });

  plainTest(
    'the agent keeps unsent samples in memory while the disk is full, and saves them when it has space again',
    () => {
      const found = amongMounts(
        `mount -t tmpfs -o size=12k none /mnt; ${program}`,
        onParts(`import { execFileSync } from 'node:child_process';
      import { measureNames } from '${root}/protocol/src/index.ts';
      import { ManualClock } from '${root}/lib/test/manual-clock.ts';
      import { SampleBuffer } from '${root}/agent/src/metrics/sample-buffer.ts';
      import { SavedSamples } from '${root}/agent/src/metrics/saved-samples.ts';
      const clock = new ManualClock();
      const said = [];
      const open = (buffer) => {
        const log = { info() {}, warn: (_, message) => said.push(message) };
        const saved = new SavedSamples({ path: '/mnt/samples', nodeId: () => 'a', buffer, clock, log });
        saved.restore();
        return saved;
      };
      const buffer = new SampleBuffer();
      const saved = open(buffer);
      const take = async (count) => {
        for (let n = 0; n < count; n++) {
          clock.advance(30_000);
          buffer.push({ collected_at: clock.now() / 1000, ...Object.fromEntries(measureNames.map((name) => [name, 7])) });
          saved.changed();
          do await new Promise((resolve) => setTimeout(resolve, 1));
          while (process.getActiveResourcesInfo().includes('FSReqCallback'));
        }
      };
      const kept = () => {
        const again = new SampleBuffer();
        open(again);
        return Array.from({ length: again.end }, (_, n) => again.timeOf(n) - buffer.timeOf(0));
      };
      await take(400);
      const full = { kept: kept(), said: [...said] };
      execFileSync('mount', ['-o', 'remount,size=1m', '/mnt']);
      await take(21);
      await saved.end();
      console.log(JSON.stringify({ full, kept: kept(), said }));`),
      ) as { full: { kept: number[]; said: string[] }; kept: number[]; said: string[] };
      const times = Array.from({ length: 421 }, (_, n) => n * 30);
      expect(found.full.kept.length).toBeGreaterThan(100);
      expect(found.full.kept.length).toBeLessThan(400);
      expect(found.full.kept).toEqual(times.slice(0, found.full.kept.length));
      expect(found.full.said).toEqual([expect.stringContaining('keeping them in memory')]);
      expect(found.kept).toEqual(times);
      expect(found.said).toHaveLength(1);
    },
  );

  plainTest('samples are null for a disk that hangs, which is queried once and does not block other reads', () => {
    const found = amongMounts(
      `${silentFar}\n${program}`,
      // Makes the unresponsive file system look like one on a disk.
      onParts(`let asked = 0;
      const source = {
        ...machineSource,
        text: () => '5 1 8:1 / /mnt/far rw - ext4 /dev/sda1 rw',
        capacity: (path) => (asked++, machineSource.capacity(path)),
      };
      const reader = new DiskReader(source, systemClock);
      const first = await reader.read();
      const more = [];
      for (let times = 0; times < 20; times++) more.push(await reader.read());
      const texts = await Promise.all(Array.from({ length: 20 }, () => readFile('${join(root, 'package.json')}', 'utf8')));
      console.log(JSON.stringify({ first, more, asked, read: texts.length }));`),
    );
    expect(found).toMatchObject({ first: null, asked: 1, read: 20 });
    expect(new Set(found.more as unknown[])).toEqual(new Set([null]));
  });

  plainTest('the agent exits on SIGTERM and on an uncaught error, even while a disk hangs', () => {
    // Reads the disk, which blocks a thread, and throws an uncaught error on SIGUSR2.
    const asking = `import { statfs } from 'node:fs'; statfs('/mnt/far', () => {});
      process.on('SIGUSR2', () => { throw new Error('a bug of the test'); })`;
    const ends = amongMounts(
      `${silentFar}; cd /mnt
      run() {
        mkdir -m 700 $1
        "$NODE" --import "data:text/javascript,$BODY" '${root}/agent/src/main.ts' --data-dir $1 connect 127.0.0.1:1 > $1.log 2>&1 &
        pid=$!
        until grep -q 'agent started' $1.log; do sleep 0.05; kill -0 $pid || { cat $1.log >&2; exit 1; }; done
        kill -$1 $pid
        code=0; wait $pid || code=$?
        echo $code > $1.code
      }
      run TERM & run USR2; wait
      echo "{\\"TERM\\": $(cat TERM.code), \\"USR2\\": $(cat USR2.code)}"`,
      asking,
    );
    // systemd treats termination by SIGTERM as a clean exit, and termination by SIGKILL as a failure.
    expect(ends).toEqual({ TERM: 128 + 15, USR2: 128 + 9 });
  });
});
