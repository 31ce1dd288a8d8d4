"""Why a rank ended or hangs, in words and as a kind that decides whether all ranks start again."""
