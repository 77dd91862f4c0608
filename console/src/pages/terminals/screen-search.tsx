import { ArrowDown, ArrowUp, X } from 'lucide-react';
import { useState } from 'react';
import { IconButton } from '../../parts/button.tsx';
import { Input } from '../../parts/form/field.tsx';

export function ScreenSearch({
  onFind,
  onClose,
}: {
  readonly onFind: (text: string, backwards: boolean) => boolean;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState('');
  const [found, setFound] = useState(true);
  const find = (backwards: boolean) => setFound(text === '' || onFind(text, backwards));
  return (
    <form
      role="search"
      className="flex shrink-0 items-center gap-1 border-b px-2 py-1.5"
      onSubmit={(event) => {
        event.preventDefault();
        find(true);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      <div className="min-w-0 flex-1 sm:max-w-72">
        <Input
          label="Search the screen"
          hideLabel
          placeholder="Search the screen"
          autoFocus
          value={text}
          aria-invalid={!found}
          onChange={(event) => {
            setText(event.target.value);
            setFound(event.target.value === '' || onFind(event.target.value, true));
          }}
        />
      </div>
      <IconButton small label="Previous match" type="submit" icon={<ArrowUp className="size-4" />} />
      <IconButton small label="Next match" icon={<ArrowDown className="size-4" />} onClick={() => find(false)} />
      <span role="status" className="flex-1 text-muted text-xs">
        {found ? '' : 'Not found'}
      </span>
      <IconButton small label="Close search" icon={<X className="size-4" />} onClick={onClose} />
    </form>
  );
}
