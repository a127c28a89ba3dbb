; Installer for Windows, compiled by packaging/installer_parts/windows.py with makensis:
;   makensis -DVERSION=1.0.0rc1 -DNUMBERS=1.0.0.0 -DFOLDER=path -DOUTPUT=file.exe -DICON=file.ico decodescope.nsi
; It installs for one user and needs no administrator. Settings, runs and models are kept when it is removed.
Unicode true
!include "MUI2.nsh"
!include "FileFunc.nsh"

!define NAME "Decodescope"
!define PROGRAM "decodescope.exe"
!define RUN_CLASS "Decodescope.Run"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${NAME}"

Name "${NAME} ${VERSION}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "Software\${NAME}" "InstallDir"
RequestExecutionLevel user
SetCompressor /SOLID lzma
SetCompressorDictSize 64
ManifestDPIAware true
!ifdef SIGN
  !uninstfinalize '${SIGN}' = 0
!endif

VIProductVersion "${NUMBERS}"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} installer"
VIAddVersionKey "LegalCopyright" "The Decodescope authors, MIT licence"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "$INSTDIR\${PROGRAM}"
!insertmacro MUI_PAGE_LICENSE "${FOLDER}\_internal\LICENSE"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "SimpChinese"

; Refuses to go on while the program runs, because Windows does not replace a file that is in use.
!macro REQUIRE_CLOSED UN
Function ${UN}RequireClosed
  IfFileExists "$INSTDIR\${PROGRAM}" 0 closed
  retry:
    ClearErrors
    FileOpen $0 "$INSTDIR\${PROGRAM}" a
    IfErrors 0 writable
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "${NAME} is running. Close it and try again." /SD IDCANCEL IDRETRY retry
    Abort
  writable:
    FileClose $0
  closed:
FunctionEnd
!macroend
!insertmacro REQUIRE_CLOSED ""
!insertmacro REQUIRE_CLOSED "un."

Section "Install"
  Call RequireClosed
  RMDir /r "$INSTDIR\_internal" ; files that a new version no longer has
  SetOutPath "$INSTDIR"
  File /r "${FOLDER}\*"
  File "/oname=decodescope.ico" "${ICON}"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\${PROGRAM}" "" "$INSTDIR\decodescope.ico"

  WriteRegStr HKCU "Software\${NAME}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "Software\Classes\${RUN_CLASS}" "" "Recorded run of a language model"
  WriteRegStr HKCU "Software\Classes\${RUN_CLASS}\DefaultIcon" "" "$INSTDIR\decodescope.ico"
  WriteRegStr HKCU "Software\Classes\${RUN_CLASS}\shell\open\command" "" '"$INSTDIR\${PROGRAM}" "%1"'
  WriteRegStr HKCU "Software\Classes\.decodescope\OpenWithProgids" "${RUN_CLASS}" ""
  WriteRegStr HKCU "Software\Classes\.decodescope" "" "${RUN_CLASS}"

  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\decodescope.ico"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Decodescope authors"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" $0
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)' ; file types have changed
SectionEnd

; Removes what the installer wrote, and the folder only if nothing else is in it.
Section "Uninstall"
  Call un.RequireClosed
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\${PROGRAM}"
  Delete "$INSTDIR\decodescope-console.exe"
  Delete "$INSTDIR\decodescope.ico"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  DeleteRegKey HKCU "Software\Classes\${RUN_CLASS}"
  DeleteRegValue HKCU "Software\Classes\.decodescope\OpenWithProgids" "${RUN_CLASS}"
  ReadRegStr $0 HKCU "Software\Classes\.decodescope" ""
  StrCmp $0 "${RUN_CLASS}" 0 +2
    DeleteRegValue HKCU "Software\Classes\.decodescope" ""
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegKey HKCU "Software\${NAME}"
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
SectionEnd
