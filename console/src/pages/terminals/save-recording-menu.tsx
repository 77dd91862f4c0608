import { Download } from 'lucide-react';
import { downloadTranscript } from '../../api/terminals/terminals.ts';
import { IconButton } from '../../parts/button.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { saveFile } from '../../parts/save-file.ts';

export function SaveRecordingMenu({ session_id }: { readonly session_id: string }) {
  const save = async (format: 'raw' | 'asciicast') => {
    try {
      saveFile(await downloadTranscript(session_id, format), `${session_id}.${format === 'raw' ? 'raw' : 'cast'}`);
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <Menu trigger={<IconButton label="Download the recording" icon={<Download className="size-4" />} />}>
      <MenuItem onSelect={() => void save('asciicast')}>As asciicast, with timing</MenuItem>
      <MenuItem onSelect={() => void save('raw')}>As raw output</MenuItem>
    </Menu>
  );
}
