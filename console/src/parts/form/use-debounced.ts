import { useEffect, useRef, useState } from 'react';

const delayMs = 300;

/**
 * Returns the text in a field that triggers requests. The field shows input immediately; `onText` receives it after a
 * pause in typing.
 * @param value the last text passed to `onText`; if another component changes it, the field shows the new value
 */
export function useDebouncedText(
  value: string,
  onText: (text: string) => void,
): { text: string; set: (text: string) => void } {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const reported = useRef(value);
  useEffect(() => {
    if (value === reported.current) return;
    reported.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return {
    text,
    set: (next) => {
      setText(next);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        reported.current = next;
        onText(next);
      }, delayMs);
    },
  };
}
