"""The contest of chapter 12, designed again. The chapter still reads the older one."""
