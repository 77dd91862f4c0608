import { Dices, Eye, EyeOff } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { TextArea } from '../../parts/form/field.tsx';
import { randomValue } from './secret-form.ts';

/** A masked input for a secret value. Uses a text area, because keys have several lines. */
export function ValueField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const [shown, setShown] = useState(false);
  return (
    <div>
      <TextArea
        label="Value"
        required
        rows={shown ? 4 : 2}
        autoComplete="off"
        className={shown ? 'font-mono text-xs' : 'font-mono text-xs [-webkit-text-security:disc]'}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        hint="Stored encrypted and never shown again. Line breaks are preserved."
      />
      <div className="mt-1 flex flex-wrap items-center gap-1">
        <Button
          small
          look="quiet"
          icon={shown ? <EyeOff className="size-3.5" /> : <Eye className="size-3.5" />}
          aria-pressed={shown}
          onClick={() => setShown(!shown)}
        >
          {shown ? 'Hide' : 'Show'}
        </Button>
        <Button
          small
          look="quiet"
          icon={<Dices className="size-3.5" />}
          onClick={() => onChange(randomValue((bytes) => crypto.getRandomValues(bytes)))}
        >
          Generate
        </Button>
        {value !== '' && <CopyButton text={value} label="Copy the value" />}
      </div>
    </div>
  );
}
