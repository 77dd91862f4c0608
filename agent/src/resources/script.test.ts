import { describe, expect, test } from 'vitest';
import { operation, script } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';

const h = useAgent();

describe.each(['sh', 'bash'] as const)('a script of %s', (program) => {
  test('programs that a script starts cannot read the text of the script', async () => {
    const apply = '#!/bin/sh\nsh -c "ls -l /proc/self/fd; cat <&3"; exit 0';
    const outcome = await h.agent.run(operation('apply', [script('s', { program, apply })]));
    const output = outcome.outputs[0];
    expect(output?.stdout).toMatch(/ 0 -> \/dev\/null/);
    expect(output?.stdout).not.toMatch(/ 3 -> .*deleted/);
    expect(output?.stderr).toMatch(/3.*[Bb]ad file descriptor/);
    expect(`${output?.stdout}${output?.stderr}`).not.toContain('#!/bin/sh');
  });

  test('reports the line number of an error in a script, without a file path', async () => {
    const outcome = await h.agent.run(operation('apply', [script('s', { program, apply: 'true\nno-such-program' })]));
    expect(outcome.results[0]?.message).toMatch(/exit code 127: (line )?2: no-such-program: .*not found$/);
    expect(outcome.outputs[0]?.stderr).not.toContain('/proc');
  });
});
