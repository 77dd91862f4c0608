import { useEffect, useState } from 'react';
import { validate } from '../../api/modules/modules.ts';
import type { Verdict } from '../../editor/faults.ts';

/** Milliseconds without typing before the text is validated. */
const debounceMs = 300;
/** Maximum size of a module that the orchestrator accepts, in bytes. */
const maxBytes = 2 * 1024 * 1024;

/**
 * Sends the text to the orchestrator for validation after a pause in typing. Aborts requests for outdated text.
 * @param filesOf the revision that provides the text's files; undefined for the newest
 * @returns the last verdict, which may be for an earlier version of the text, and the error of the last request
 */
export function useVerdict(text: string, filesOf?: number): { verdict: Verdict | null; error: unknown } {
  const [state, setState] = useState<{ verdict: Verdict | null; error: unknown }>({ verdict: null, error: null });
  useEffect(() => {
    if (text.trim() === '') {
      setState({ verdict: { text, faults: [], warnings: [] }, error: null });
      return;
    }
    if (new Blob([text]).size > maxBytes) {
      const fault = { path: '', message: 'a module is at most 2 MiB', line: 1, column: 1 };
      setState({ verdict: { text, faults: [fault], warnings: [] }, error: null });
      return;
    }
    const request = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        const { faults, warnings } = await validate(text, filesOf, request.signal);
        if (!request.signal.aborted) setState({ verdict: { text, faults, warnings }, error: null });
      } catch (error) {
        if (!request.signal.aborted) setState(({ verdict }) => ({ verdict, error }));
      }
    }, debounceMs);
    return () => {
      window.clearTimeout(timer);
      request.abort();
    };
  }, [text, filesOf]);
  return state;
}
