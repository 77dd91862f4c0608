import { useEffect, useState } from 'react';
import { validate } from '../../api/modules.ts';
import type { Verdict } from '../../editor/faults.ts';

/** Milliseconds without a key before a text is sent. */
const restMs = 300;
/** What the orchestrator reads at most. */
const mostBytes = 2 * 1024 * 1024;

/**
 * What the orchestrator says of a text, some time after the last key. Whatever was asked for a text that has changed is
 * called off.
 * @returns the last verdict, which may be of the text before; and why there is none
 */
export function useVerdict(text: string): { verdict: Verdict | null; error: unknown } {
  const [state, setState] = useState<{ verdict: Verdict | null; error: unknown }>({ verdict: null, error: null });
  useEffect(() => {
    if (text.trim() === '') {
      setState({ verdict: { text, faults: [], warnings: [] }, error: null });
      return;
    }
    if (new Blob([text]).size > mostBytes) {
      const fault = { path: '', message: 'a module is at most 2 MiB', line: 1, column: 1 };
      setState({ verdict: { text, faults: [fault], warnings: [] }, error: null });
      return;
    }
    const asked = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        const { faults, warnings } = await validate(text, asked.signal);
        if (!asked.signal.aborted) setState({ verdict: { text, faults, warnings }, error: null });
      } catch (error) {
        if (!asked.signal.aborted) setState(({ verdict }) => ({ verdict, error }));
      }
    }, restMs);
    return () => {
      window.clearTimeout(timer);
      asked.abort();
    };
  }, [text]);
  return state;
}
