import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { dialAsAgent, type TestAgent } from '../orchestrator/test/test-agent.ts';
import { test } from './harness.ts';

/** Tests how unauthenticated clients affect other clients. Prints times without comparing them with limits. */

/** Returns the milliseconds until `/healthz` responds on a new connection. */
async function healthMs(port: number, localAddress: string): Promise<number> {
  const startedAt = performance.now();
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/healthz',
    localAddress,
    rejectUnauthorized: false,
    agent: false as unknown as Agent,
  });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  await once(answer, 'close');
  expect(answer.statusCode).toBe(200);
  return Math.round(performance.now() - startedAt);
}

test('4,100 silent connections from one address do not block the API for another', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const port = orchestrator.apiPort;
  const before = await healthMs(port, '127.0.0.1');
  const sockets: Socket[] = [];
  let closed = 0;
  try {
    for (let at = 0; at < 41; at++) {
      const batch = Array.from({ length: 100 }, () =>
        connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
          .on('error', () => {})
          .once('close', () => closed++),
      );
      sockets.push(...batch);
      await Promise.all(batch.map((socket) => once(socket, 'connect')));
    }
    const during = [await healthMs(port, '127.0.0.1'), await healthMs(port, '127.0.0.3')];
    console.log(`/healthz: ${before} ms before, ${during.join(' and ')} ms during 4,100 silent connections`);
    // The orchestrator keeps at most 1,024 connections from one network open, and closes the others.
    await expect.poll(() => closed).toBeGreaterThanOrEqual(3_076);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  // Fields utime and stime of proc_pid_stat(5), in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * Requests `/healthz` repeatedly from a separate process, so that other work in this process does not distort the
 * times.
 * @returns a function that kills the process and returns the longest response time in milliseconds
 */
function longestHealthMs(port: number): () => Promise<number> {
  const asks = `
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    let longest = 0, over = false;
    process.stdin.on('end', () => { over = true; }).resume();
    do {
      const begun = performance.now();
      await (await fetch('https://127.0.0.1:${port}/healthz')).text();
      longest = Math.max(longest, performance.now() - begun);
    } while (!over);
    console.log(Math.round(longest));
    process.exit(0);`;
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', asks], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const longest = text(child.stdout);
  return async () => {
    child.stdin.end();
    return Number(await longest);
  };
}

/** Maximum number of connection attempts per client. */
const maxDials = 5;
/** Maximum number of measurements. A measurement with many repeated connection attempts is discarded. */
const maxMeasurements = 5;

/**
 * Connects an agent. Retries after a disconnect, because with 150 clients this process may exceed the handshake timeout.
 * @returns the agent, and the number of connection attempts
 */
async function dialWithRetries(port: number): Promise<{ agent: TestAgent; dials: number }> {
  for (let dials = 1; ; dials++) {
    try {
      return { agent: await dialAsAgent(port, undefined, '127.0.0.1', '127.0.0.2'), dials };
    } catch (error) {
      // Node.js has several messages for a connection that the peer closes, with the same code.
      const isCut = (error as NodeJS.ErrnoException).code === 'ECONNRESET' || String(error).includes('socket hang up');
      if (!isCut || dials === maxDials) throw error;
    }
  }
}

test('a hostile hello costs the orchestrator less than twice the CPU time of a valid hello', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const pid = orchestrator.program.pid as number;
  const count = 150;
  const measure = async (say: (agent: TestAgent) => Promise<unknown>) => {
    const before = processorMs(pid);
    const health = longestHealthMs(orchestrator.apiPort);
    const dials = await Promise.all(
      Array.from({ length: count }, async () => {
        const { agent, dials } = await dialWithRetries(orchestrator.agentPort);
        await say(agent);
        agent.end();
        return dials;
      }),
    );
    const redials = dials.reduce((sum, each) => sum + each, 0) - count;
    return { ms: (processorMs(pid) - before) / count, health: await health(), redials };
  };
  /** Repeats the measurement if more than 5 % of the clients had to reconnect, which distorts the times. */
  const measured = async (say: (agent: TestAgent) => Promise<unknown>) => {
    for (let attempt = 1; ; attempt++) {
      const found = await measure(say);
      if (found.redials <= count / 20) return found;
      if (attempt === maxMeasurements)
        throw new Error(`${count} clients lost their connection ${found.redials} times before the hello`);
    }
  };
  // With an invalid token, the orchestrator verifies the signature but creates no record. The first run is a warm-up.
  const valid = async (agent: TestAgent) => {
    agent.send(await agent.hello({ token: 'mt_none' }));
    expect((await agent.next('refused')).code).toBe('token_invalid');
  };
  await measure(valid);
  const small = await measured(valid);
  const attributes = Object.fromEntries(Array.from({ length: 3_400 }, (_, at) => [`${at}`, 1]));
  const hostile = await measured(async (agent) => {
    agent.send({ ...(await agent.hello()), signature: '00'.repeat(64), attributes });
    await agent.next('refused');
  });
  const ratio = hostile.ms / small.ms;
  console.log(
    `CPU time per hello: small and valid ${small.ms.toFixed(1)} ms, hostile ${hostile.ms.toFixed(1)} ms, ratio ${ratio.toFixed(2)}; ` +
      `longest response of /healthz: ${small.health} and ${hostile.health} ms`,
  );
  // The ratio is about 4 with full validation, and 0.9 to 1.3 with early refusal.
  expect(ratio).toBeLessThan(2);
});
